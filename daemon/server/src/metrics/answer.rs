//! What the listener for metrics answers.

use hyper::header::{ACCEPT, HeaderValue};
use hyper::{Method, Request, StatusCode};

use super::{accept, scrape};
use crate::daemon::Daemon;
use crate::http::{Reply, page, text};

/// Answers a scrape. But for probes there is nothing else on that listener.
pub(crate) fn answer<B>(daemon: &Daemon, request: &Request<B>) -> Reply {
    let live = daemon.live();
    let path = live.envoy.compat.metrics_path.as_deref().unwrap_or("/metrics");
    if request.uri().path() != path {
        return text(StatusCode::NOT_FOUND, format!("metrics are at {path}\n"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET\n");
    }
    page_of(daemon, request)
}

/// The page, in the form that is asked for.
pub(crate) fn page_of<B>(daemon: &Daemon, request: &Request<B>) -> Reply {
    let wanted =
        request.headers().get_all(ACCEPT).iter().filter_map(|get_all| get_all.to_str().ok());
    let form = accept::form(&wanted.collect::<Vec<_>>().join(","));
    page(HeaderValue::from_static(form.content_type()), scrape::text(daemon, form))
}

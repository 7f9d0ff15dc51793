//! What the listener for metrics answers.

use hyper::header::{ACCEPT, HeaderValue};
use hyper::{Method, Request, StatusCode};

use super::{accept, scrape};
use crate::daemon::Daemon;
use crate::http::{Reply, page, text};

/// Answers a scrape. But for probes there is nothing else on that listener.
pub(crate) fn answer<B>(daemon: &Daemon, request: &Request<B>) -> Reply {
    if request.uri().path() != "/metrics" {
        return text(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET\n");
    }
    let wanted = request.headers().get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let form = accept::form(&wanted.collect::<Vec<_>>().join(","));
    page(HeaderValue::from_static(form.content_type()), scrape::text(daemon, form))
}

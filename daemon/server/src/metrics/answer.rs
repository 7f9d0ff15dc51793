//! The responses of the metrics listener.

use hyper::header::{ACCEPT, HeaderValue};
use hyper::{Method, Request, StatusCode};

use super::{accept, scrape};
use crate::services::Services;
use tollgate_http::{Reply, page, text};

/// Answers a scrape.
pub(crate) fn answer<B>(services: &Services, request: &Request<B>) -> Reply {
    let active = services.engine.active();
    let path = active.envoy.compat.metrics_path.as_deref().unwrap_or("/metrics");
    if request.uri().path() != path {
        return text(StatusCode::NOT_FOUND, format!("metrics are at {path}\n"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET\n");
    }
    page_of(services, request)
}

/// The page in the format that the client accepts.
pub(crate) fn page_of<B>(services: &Services, request: &Request<B>) -> Reply {
    let wanted = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let form = accept::form(&wanted.collect::<Vec<_>>().join(","));
    page(HeaderValue::from_static(form.content_type()), scrape::text(services, form))
}

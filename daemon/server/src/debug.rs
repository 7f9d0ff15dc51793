//! The debug listener: the effective limits and all counters.

use std::fmt::Write;

use hyper::{Method, Request, StatusCode};

use crate::metrics;
use crate::services::Services;
use tollgate_http::{Reply, text};

const INDEX: &str = "\
/metrics: all counters, for Prometheus
/rlconfig: the effective limits
/stats: the counters of envoyproxy/ratelimit, by their StatsD names
";

/// Answers a request. Every page is read-only.
pub(crate) fn answer<B>(services: &Services, request: &Request<B>) -> Reply {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "pages are read with GET\n");
    }
    match request.uri().path() {
        "/" => text(StatusCode::OK, INDEX),
        "/metrics" => metrics::page_of(services, request),
        "/rlconfig" => text(StatusCode::OK, services.engine.active().domains.dump()),
        "/stats" => text(StatusCode::OK, stats(services)),
        path if path.starts_with("/debug/pprof") => {
            let line = "no profiles, which only programs in Go have; use perf on this process\n";
            text(StatusCode::NOT_FOUND, line)
        }
        _ => text(StatusCode::NOT_FOUND, format!("unknown page; expected one of\n{INDEX}")),
    }
}

/// The counters of envoyproxy/ratelimit, one a line.
fn stats(services: &Services) -> String {
    let mut text = String::new();
    for (name, count) in metrics::statsd(services) {
        // A client may have chosen the name, and a line is one statistic. Writing to a `String`
        // cannot fail.
        let _ = writeln!(text, "{}: {count}", name.replace(char::is_control, "_"));
    }
    text
}

//! The pages of the metrics listener and of the debug listener.

mod compat;
mod families;
mod page;
mod scrape;

use std::fmt::Write;

use hyper::header::{ACCEPT, HeaderValue};
use hyper::{Method, Request, StatusCode};

pub use self::families::{FAMILIES, Family, FamilyKind};
use self::page::Format;
use crate::services::Services;
use tollgate_http::{Reply, text};

const DEBUG_INDEX: &str = "\
/metrics: all counters, for Prometheus
/rlconfig: the effective limits
/stats: the counters of envoyproxy/ratelimit, by their StatsD names
";

/// Answers a request on the metrics listener.
pub(crate) fn answer<B>(services: &Services, request: &Request<B>) -> Reply {
    let active = services.engine.active();
    let path = active.envoy.compat.metrics_path.as_deref().unwrap_or("/metrics");
    if request.uri().path() != path {
        return text(StatusCode::NOT_FOUND, format!("metrics are at {path}\n"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET\n");
    }
    counters(services, request)
}

/// Answers a request on the debug listener. Every page is read-only.
pub(crate) fn answer_debug<B>(services: &Services, request: &Request<B>) -> Reply {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "pages are read with GET\n");
    }
    match request.uri().path() {
        "/" => text(StatusCode::OK, DEBUG_INDEX),
        "/metrics" => counters(services, request),
        "/rlconfig" => text(StatusCode::OK, services.engine.active().domains.dump()),
        "/stats" => text(StatusCode::OK, stats(services)),
        path if path.starts_with("/debug/pprof") => {
            let line = "no profiles, which only programs in Go have; use perf on this process\n";
            text(StatusCode::NOT_FOUND, line)
        }
        _ => text(StatusCode::NOT_FOUND, format!("unknown page; expected one of\n{DEBUG_INDEX}")),
    }
}

/// All counters, in the format that the client accepts.
fn counters<B>(services: &Services, request: &Request<B>) -> Reply {
    let accept = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let format = accepted_format(&accept.collect::<Vec<_>>().join(","));
    let kind = HeaderValue::from_static(format.content_type());
    tollgate_http::page(kind, scrape::text(services, format))
}

/// The counters of envoyproxy/ratelimit, one a line.
fn stats(services: &Services) -> String {
    let mut text = String::new();
    for (name, count) in compat::statsd(services) {
        // A client may have chosen the name, and a line is one statistic. Writing to a `String`
        // cannot fail.
        let _ = writeln!(text, "{}: {count}", name.replace(char::is_control, "_"));
    }
    text
}

/// The format that an `Accept` header prefers: OpenMetrics if it is listed with at least the
/// quality of the classic format, which is the default.
fn accepted_format(accept: &str) -> Format {
    let (mut openmetrics, mut classic) = (0, 0);
    for range in accept.split(',') {
        let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
        let (mut quality, mut version) = (1_000, None);
        for (name, value) in parameters.split(';').filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => quality = thousandths(value.trim()),
                "version" => version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        match (&*kind.trim().to_ascii_lowercase(), version) {
            ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
                openmetrics = quality.max(openmetrics);
            }
            ("text/plain", None | Some("0.0.4")) | ("text/*", _) => classic = quality.max(classic),
            _ => {}
        }
    }
    if openmetrics > 0 && openmetrics >= classic { Format::OpenMetrics } else { Format::Classic }
}

/// Parses a quality as thousandths; an invalid one counts as 0.
fn thousandths(quality: &str) -> u16 {
    let (whole, part) = quality.split_once('.').unwrap_or((quality, ""));
    let is_part = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "1" if is_part && part.bytes().all(|byte| byte == b'0') => 1_000,
        "0" if is_part => {
            let digits = part.bytes().chain(*b"000").take(3);
            digits.fold(0_u16, |number, digit| number * 10 + u16::from(digit - b'0'))
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_served_only_if_preferred() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
            application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
            text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, is_openmetrics) in [
            ("", false),
            ("*/*", false),
            ("text/html, */*;q=0.8", false),
            ("text/plain", false),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", true),
            ("application/openmetrics-text; version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=0.000, */*", false),
            ("application/openmetrics-text;q=0.4, text/plain;q=0.5", false),
            ("application/openmetrics-text;q=0.5, text/plain;q=0.5", true),
            ("application/openmetrics-text;q=1.000, text/*", true),
            ("application/openmetrics-text;q=0.25, text/*;q=0.251", false),
            ("application/openmetrics-text;q=banana", false),
            ("application/vnd.google.protobuf;proto=x;q=0.7,text/plain;version=0.0.4", false),
            (prometheus, true),
        ] {
            let expected = if is_openmetrics { Format::OpenMetrics } else { Format::Classic };
            assert_eq!(accepted_format(accept), expected, "{accept}");
        }
    }
}

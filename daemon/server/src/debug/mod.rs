//! The listener for people who debug: what is in force, and what is counted.

mod config;
mod stats;

use std::fmt::Write;

use hyper::{Method, Request, StatusCode};

use crate::metrics;
use crate::services::Services;
use tollgate_http::{Reply, text};

/// A page.
struct Page {
    path: &'static str,
    about: &'static str,
    text: fn(&Services) -> String,
}

/// Those that are text, in the order in which they are listed.
static PAGES: &[Page] = &[
    Page { path: "/rlconfig", about: "the limits that are in force", text: config::text },
    Page { path: "/stats", about: "what is counted, by the names of StatsD", text: stats::text },
];

const METRICS: &str = "/metrics";
/// Where programs in Go show what they are doing.
const PROFILES: &str = "/debug/pprof";

/// Answers a request. Nothing that anybody asks for here changes anything.
pub(crate) fn answer<B>(services: &Services, request: &Request<B>) -> Reply {
    let path = request.uri().path();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "pages are read with GET\n");
    }
    if path == METRICS {
        return metrics::page_of(services, request);
    }
    if path.starts_with(PROFILES) {
        let line = "this is no program in Go; perf can profile it where it runs\n";
        return text(StatusCode::NOT_FOUND, line);
    }
    match PAGES.iter().find(|page| page.path == path) {
        Some(page) => text(StatusCode::OK, (page.text)(services)),
        None if path == "/" => text(StatusCode::OK, list()),
        None => {
            text(StatusCode::NOT_FOUND, format!("there is no such page; there are\n{}", list()))
        }
    }
}

fn list() -> String {
    let mut list = format!("{METRICS}: what is counted, for Prometheus\n");
    for Page { path, about, .. } in PAGES {
        // Writing into a text does not fail.
        let _ = writeln!(list, "{path}: {about}");
    }
    list
}

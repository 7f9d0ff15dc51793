//! Whether the process lives, and whether it wants requests.

use std::fmt::Write;
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::timeout;

use super::reply::{self, Reply};
use crate::daemon::Daemon;
use crate::query;
use crate::xds::Awaited;

/// `/livez`: whoever reads this was answered.
pub(super) fn live() -> Reply {
    reply::text(StatusCode::OK, "ok\n")
}

/// `/readyz`: from when the limits are known until it is told to stop. With `?verbose` there is a
/// line for all that may be wrong; nothing else of that makes it unready, since the policies say
/// what holds without a store.
pub(super) async fn ready(daemon: &Daemon, query: Option<&str>) -> Reply {
    let (status, word) = match (daemon.is_draining(), daemon.discovery.known()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        (false, Err(Awaited)) => (StatusCode::SERVICE_UNAVAILABLE, "waiting for limits\n"),
        (false, Ok(())) => (StatusCode::OK, "ok\n"),
    };
    let asked = query.unwrap_or_default().as_bytes();
    if !query::pairs(asked).any(|(name, _)| &*name == b"verbose") {
        return reply::text(status, word);
    }
    let mut lines = String::new();
    let mut line = |name: &str, wrong: Option<&str>| {
        // Writing to a string does not fail.
        let _ = match wrong {
            None => writeln!(lines, "[+] {name} ok"),
            Some(why) => writeln!(lines, "[-] {name}: {}", why.replace('\n', "\n    ")),
        };
    };
    line("requests", daemon.is_draining().then_some("draining"));
    line("store", store(daemon).await.as_deref());
    line("configuration", daemon.reloads.refusal().as_deref());
    if let Some(amiss) = daemon.discovery.amiss() {
        line("discovery", amiss.as_deref());
    }
    lines.push_str(word);
    reply::text(status, lines)
}

/// Why the store cannot be asked, if so.
async fn store(daemon: &Daemon) -> Option<String> {
    let ready = daemon.limiter().as_redis()?.ready();
    match timeout(Duration::ZERO, ready).await {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why.to_string()),
        Err(_) => Some("it is not connected yet".to_owned()),
    }
}

//! Whether the process lives, and whether it wants requests.

use hyper::StatusCode;

use super::reply::{self, Reply};
use crate::daemon::Daemon;

/// `/livez`: whoever reads this was answered.
pub(super) fn live() -> Reply {
    reply::text(StatusCode::OK, "ok\n")
}

/// `/readyz`: until it is told to stop.
pub(super) fn ready(daemon: &Daemon) -> Reply {
    if daemon.is_draining() {
        return reply::text(StatusCode::SERVICE_UNAVAILABLE, "draining\n");
    }
    reply::text(StatusCode::OK, "ok\n")
}

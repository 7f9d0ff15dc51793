//! Limits from a control plane.

mod configurations;
mod connection;
mod control_plane;
mod stream;
mod tls;

use tollgate_server::{Config, XdsOptions};

use self::configurations::one;
use self::control_plane::{ControlPlane, Session};
use crate::support::daemon::Daemon;
use crate::support::wait_until_ready;

/// Starts a daemon that takes its limits from a control plane, with a short backoff.
async fn start(plane: &ControlPlane) -> Daemon {
    start_with_options(plane, |_| {}).await
}

async fn start_with_options(plane: &ControlPlane, set: impl FnOnce(&mut XdsOptions)) -> Daemon {
    let mut config = Config::from_yaml("policies: {}").unwrap();
    config.envoy.merge_domains = true;
    config.envoy.xds = Some(options(plane, set));
    Daemon::start_with_config(config).await
}

fn options(plane: &ControlPlane, set: impl FnOnce(&mut XdsOptions)) -> XdsOptions {
    let mut options = XdsOptions::new(&plane.address.to_string()).unwrap();
    options.backoff_initial = std::time::Duration::from_millis(4);
    options.backoff_max = std::time::Duration::from_millis(16);
    set(&mut options);
    options
}

/// Starts a control plane and a daemon, and sends version 1: `foo` with `k1=v1 3/DAY`.
async fn start_configured() -> (ControlPlane, Daemon, Session) {
    let mut plane = ControlPlane::start().await;
    let daemon = start(&plane).await;
    let mut session = open(&mut plane).await;
    session.push_valid("1", one("foo", "k1=v1 3/DAY")).await;
    (plane, daemon, session)
}

/// Waits for the next stream and its first request.
async fn open(plane: &mut ControlPlane) -> Session {
    let mut session = plane.session().await;
    session.request().await;
    session
}

/// Waits until the readiness page of a daemon has this status and contains this text.
async fn wait_for_readiness(daemon: &Daemon, status: u16, text: &str) {
    wait_until_ready(&mut daemon.connect().await, status, text).await;
}

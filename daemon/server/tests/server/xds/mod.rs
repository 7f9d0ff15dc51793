//! Limits from a control plane.

mod configs;
mod connection;
mod plane;
mod stream;
mod tls;

use tollgate_server::{Config, XdsOptions};

use self::plane::Plane;
use crate::client::Client;
use crate::daemon::Daemon;

/// A daemon that takes its limits from a control plane, and tries again at once.
async fn start(plane: &Plane) -> Daemon {
    start_changed(plane, |_| {}).await
}

async fn start_changed(plane: &Plane, change: impl FnOnce(&mut XdsOptions)) -> Daemon {
    let mut config = Config::from_yaml("policies: {}").unwrap();
    config.envoy.merge_domains = true;
    config.envoy.xds = Some(options(plane, change));
    Daemon::start_of(config).await
}

fn options(plane: &Plane, change: impl FnOnce(&mut XdsOptions)) -> XdsOptions {
    let mut options = XdsOptions::new(&plane.address.to_string()).unwrap();
    options.backoff_initial = std::time::Duration::from_millis(4);
    options.backoff_max = std::time::Duration::from_millis(16);
    change(&mut options);
    options
}

/// Asks until it stands with the control plane as it should.
async fn until_ready(daemon: &Daemon, status: u16, said: &str) {
    let mut client: Client = daemon.connect().await;
    crate::reload::until(&mut client, "/readyz?verbose", |x| {
        x.status == status && x.body.contains(said)
    })
    .await;
}

//! Envoy's rate limit service.

mod access;
pub(crate) mod client;
mod compare;
mod connections;
mod health;
mod hostile;
mod json;
mod operations;
mod quota;
mod reflection;
mod response_headers;
mod statuses;
mod store;

use tollgate::Micros;
use tollgate_daemon::Config;
use tollgate_testkit::Folder;

use crate::support::daemon::Daemon;

/// Sends the requests of the rows on one connection and compares the responses: `> request`, then
/// `< response`. `+ micros` advances the clock. Returns the number of requests, which is not 0.
pub(crate) async fn check_all(daemon: &Daemon, rows: &str) -> usize {
    let mut client = client::connect(daemon).await;
    let lines = rows.lines().map(str::trim).enumerate();
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut checked = 0;
    while let Some((at, line)) = lines.next() {
        if let Some(micros) = line.strip_prefix("+ ") {
            daemon.clock.advance(Micros::new(micros.parse().unwrap()));
            continue;
        }
        let request = line.strip_prefix("> ").unwrap();
        let expected = lines.next().unwrap().1.strip_prefix("< ").unwrap();
        let response = client::call(&mut client, request).await;
        assert_eq!(response, expected, "line {}: {request}", at + 1);
        checked += 1;
    }
    assert_ne!(checked, 0, "the table has no rows");
    checked
}

/// Sends one request on a new connection and compares the response.
pub(crate) async fn assert_response(daemon: &Daemon, request: &str, expected: &str) {
    let mut client = client::connect(daemon).await;
    assert_eq!(client::call(&mut client, request).await, expected, "{request}");
}

/// A configuration with an envoyproxy/ratelimit file and these settings of `envoy`.
fn config(settings: &str, limits: &str) -> Config {
    let directory = Folder::create();
    let path = directory.write("limits.yaml", limits);
    let yaml = format!("envoy: {{ config: [\"{}\"], {settings} }}", path.display());
    Config::from_yaml(&yaml).unwrap()
}

pub(crate) async fn start(settings: &str, limits: &str) -> Daemon {
    Daemon::start_with_config(config(settings, limits)).await
}

//! Envoy's rate limit service as Envoy meets it.

mod access;
mod atomic;
pub(crate) mod client;
mod connections;
mod counted;
mod descriptors;
mod health;
mod hostile;
mod json;
mod lines;
mod own;
mod reference;
mod reflection;
mod rules;
mod store;
mod told;

use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use tollgate::Micros;
use tollgate_server::Config;

use crate::daemon::Daemon;

/// Asks what the rows ask, on one connection, and holds the answers to them: `> request`, then
/// `< answer`; `+ micros` lets time pass.
pub(crate) async fn check_all(daemon: &Daemon, rows: &str) {
    let mut client = client::connect(daemon).await;
    let lines = rows.lines().map(str::trim).enumerate();
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    while let Some((at, line)) = lines.next() {
        if let Some(micros) = line.strip_prefix("+ ") {
            daemon.clock.advance(Micros::new(micros.parse().unwrap()));
            continue;
        }
        let request = line.strip_prefix("> ").unwrap();
        let expected = lines.next().unwrap().1.strip_prefix("< ").unwrap();
        let answer = client::ask(&mut client, request).await;
        assert_eq!(answer, expected, "line {}: {request}", at + 1);
    }
}

/// A configuration with a file of envoyproxy/ratelimit, and these settings of `envoy` beside it.
fn config(settings: &str, limits: &str) -> Config {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = env::temp_dir().join(format!("tollgate-rls-{}-{number}.yaml", process::id()));
    fs::write(&path, limits).unwrap();
    let yaml = format!("envoy: {{ config: [\"{}\"], {settings} }}", path.display());
    let config = Config::from_yaml(&yaml).unwrap();
    fs::remove_file(&path).unwrap();
    config
}

/// A daemon with such a configuration.
async fn start(settings: &str, limits: &str) -> Daemon {
    Daemon::start_of(config(settings, limits)).await
}

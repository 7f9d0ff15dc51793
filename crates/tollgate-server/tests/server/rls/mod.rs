//! Envoy's rate limit service as Envoy meets it.

mod client;
mod own;

use tollgate::Micros;

use crate::daemon::Daemon;

/// Asks what the rows ask, on one connection, and holds the answers to them: `> request`, then
/// `< answer`; `+ micros` lets time pass.
async fn check_all(daemon: &Daemon, rows: &str) {
    let mut client = client::connect(daemon.grpc).await;
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

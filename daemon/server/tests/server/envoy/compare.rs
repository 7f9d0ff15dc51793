//! `envoy.compare`: who reaches the compared service, and what it receives.

use tokio::net::TcpListener;
use tollgate_daemon::Config;
use tollgate_testkit::Events;

use super::access::{LIMITS, call};
use super::client::connect;
use super::{client, config, start};
use crate::http::access::token;
use crate::metrics::wait_for_line;
use crate::support::daemon::Daemon;

/// A configuration with tokens that compares with the service at this address.
fn compared_with(service: impl std::fmt::Display) -> Config {
    let compare = format!("compare: {{ url: \"grpc://{service}\", timeout: 1min }}");
    let mut config = config(&compare, LIMITS);
    config.policies.define("log", "100/min log").unwrap();
    config.tokens = vec![
        token("check", "check", "'*'"),
        token("read", "read", "'*'"),
        token("log", "check", "log"),
    ];
    config
}

async fn wait_for_requests(daemon: &Daemon, counts: [(&str, u64); 4]) {
    for (result, count) in counts {
        let line = format!("tollgate_compared_requests_total{{result=\"{result}\"}} {count}");
        wait_for_line(daemon, &line).await;
    }
}

#[tokio::test]
async fn only_authorized_clients_reach_the_compared_service() {
    let open = start("", LIMITS).await;
    let daemon = Daemon::start_with_config(compared_with(open.grpc)).await;
    for (authorization, expected) in [
        (&[][..], "Unauthenticated: a token is required"),
        (&["Bearer nothing"], "Unauthenticated: invalid token"),
        (&["Bearer the-secret-of-read"], "PermissionDenied: "),
        (&["Bearer the-secret-of-log"], "PermissionDenied: "),
        // It is the first request that the service has received.
        (&["Bearer the-secret-of-check"], "OK | OK 100/HOUR 99"),
    ] {
        let response = call(&daemon, authorization, "shop | user=a").await;
        assert!(response.starts_with(expected), "{authorization:?}: {response}");
    }
    // An invalid descriptor does not hide that another one is forbidden.
    let mixed = "shop | user=a 9/UNKNOWN | user=a";
    let response = call(&daemon, &["Bearer the-secret-of-log"], mixed).await;
    assert!(response.starts_with("PermissionDenied: "), "{response}");
    let counts = [("same", 1), ("different", 0), ("other_failed", 0), ("tollgate_failed", 0)];
    wait_for_requests(&daemon, counts).await;
}

#[tokio::test]
async fn the_compared_service_does_not_receive_the_token() {
    let mut config = config("", LIMITS);
    config.tokens = vec![token("check", "check", "'*'")];
    let closed = Daemon::start_with_config(config).await;
    let daemon = Daemon::start_with_config(compared_with(closed.grpc)).await;
    let response = call(&daemon, &["Bearer the-secret-of-check"], "shop | user=a").await;
    assert!(response.starts_with("Unauthenticated: a token is required"), "{response}");
}

#[tokio::test]
async fn a_client_that_does_not_wait_is_counted() {
    let events = Events::record();
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = compared_with(silent.local_addr().unwrap());
    config.tokens.clear();
    let daemon = Daemon::start_with_config(config).await;
    let mut client = connect(&daemon).await;
    let answer = tokio::spawn(async move { client::call(&mut client, "shop | user=a").await });
    let _connection = silent.accept().await.unwrap();
    answer.abort();
    let counts = [("other_failed", 1), ("same", 0), ("different", 0), ("tollgate_failed", 0)];
    wait_for_requests(&daemon, counts).await;
    let error = "the client did not wait for the answer";
    let events = events.take();
    assert!(events.iter().any(|(_, _, fields)| fields["error"] == error), "{events:?}");
}

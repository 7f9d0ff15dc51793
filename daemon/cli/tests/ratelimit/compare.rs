//! Comparison with another rate limit service, a process of its own: it answers, Tollgate decides beside
//! it.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use tollgate_testkit::until;

use crate::client;
use crate::installation::{Installation, Ratelimit};

const MEMORY: (&str, &str) = ("BACKEND_TYPE", "memory");

/// A limit of this many requests a day in the domain `shop`.
fn installation(requests: u32) -> Installation {
    let installation = Installation::new();
    let limits = format!(
        "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: {{ unit: day, requests_per_unit: {requests} }}\n"
    );
    installation.limits("shop.yaml", &limits);
    installation
}

/// The value of a metric with these labels; 0 if it is missing.
fn metric(ratelimit: &Ratelimit, series: &str) -> u64 {
    let page = ratelimit.debug("/metrics");
    let mut lines = page.lines().filter_map(|line| line.rsplit_once(' '));
    lines.find(|(known, _)| *known == series).map_or(0, |(_, value)| value.parse().unwrap())
}

/// Waits until a metric has a value: requests are compared after their answer.
#[track_caller]
fn wait_for_metric(ratelimit: &Ratelimit, series: &str, expected: u64) {
    let is_reached = || (metric(ratelimit, series) == expected).then_some(());
    until(is_reached)
        .unwrap_or_else(|| panic!("{series} is {}, not {expected}", metric(ratelimit, series)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_compared_service_answers_and_disagreements_are_counted_with_samples() {
    let (old_installation, new_installation) = (installation(2), installation(3));
    let old = old_installation.start(&[MEMORY]);
    let url = format!("grpc://{}", old.grpc());
    let mut new = new_installation.start_with(&[MEMORY], &["--compare", &url]);
    let mut client = client::connect(new.grpc()).await;
    let mut request = async |line: &str| client::call(&mut client, line).await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(request("shop | user=ann").await);
    }
    // Tollgate itself would admit the third request.
    let expected = [
        "OK | OK 2/DAY 1",
        "OK | OK 2/DAY 0",
        "OVER_LIMIT | OVER_LIMIT 2/DAY 0",
        "OVER_LIMIT | OVER_LIMIT 2/DAY 0",
    ];
    assert_eq!(answers, expected);
    let compared = |policy: &str, result: &str| {
        format!(r#"tollgate_compared_descriptors_total{{policy="{policy}",result="{result}"}}"#)
    };
    let requests =
        |result: &str| format!(r#"tollgate_compared_requests_total{{result="{result}"}}"#);
    wait_for_metric(&new, &compared("shop.user", "same"), 3);
    wait_for_metric(&new, &compared("shop.user", "only_other_denied"), 1);
    wait_for_metric(&new, &compared("shop.user", "only_tollgate_denied"), 0);
    wait_for_metric(&new, &requests("same"), 3);
    wait_for_metric(&new, &requests("different"), 1);
    let sample = new.read_log_until("the compared service decided differently");
    for part in ["shop.user", "user=ann", "denied, 0 of 2 left", "allowed, 0 of 3 left"] {
        assert!(sample.contains(part), "no {part:?} in {sample}");
    }
    // A descriptor without a limit, and a request that both reject.
    assert_eq!(request("shop | other=x").await, "OK | OK");
    wait_for_metric(&new, &compared("_none", "same"), 1);
    let empty = request(" | user=ann").await;
    assert!(empty.contains("rate limit domain must not be empty"), "{empty}");
    wait_for_metric(&new, &requests("other_failed"), 1);

    drop(old);
    // The client gets the failure, so that Envoy's `failure_mode_deny` decides as before.
    let unavailable = request("shop | user=bob").await;
    assert!(unavailable.starts_with("Unavailable: "), "{unavailable}");
    wait_for_metric(&new, &requests("other_failed"), 2);
    // Tollgate has charged what it decided: the limit of a day is not reached.
    wait_for_metric(
        &new,
        r#"ratelimit_service_rate_limit_total_hits{domain="shop",key1="user"}"#,
        5,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_answer_is_given_up() {
    // It accepts connections, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("grpc://{}", silent.local_addr().unwrap());
    let installation = installation(3);
    let new = installation.start_with(&[MEMORY], &["--compare", &url]);
    let mut client = client::connect(new.grpc()).await;
    let answer = client::call(&mut client, "shop | user=ann");
    let answer = tokio::time::timeout(Duration::from_secs(20), answer).await.unwrap();
    assert!(answer.starts_with("DeadlineExceeded: ") && answer.contains("within 1s"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_closes_the_connection_during_a_call_is_unavailable() {
    let closing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("grpc://{}", closing.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in closing.incoming() {
            let mut connection = connection.unwrap();
            // An empty SETTINGS frame of HTTP/2, so that the client sends its call.
            connection.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
            let mut received = Vec::new();
            while !received.windows(4).any(|bytes| bytes == b"shop") {
                let mut part = [0; 1024];
                let len = connection.read(&mut part).unwrap();
                assert!(len > 0, "the client sends its call");
                received.extend_from_slice(&part[..len]);
            }
        }
    });
    let installation = installation(3);
    let new = installation.start_with(&[MEMORY], &["--compare", &url]);
    let mut client = client::connect(new.grpc()).await;
    let answer = client::call(&mut client, "shop | user=ann").await;
    assert!(answer.starts_with("Unavailable: "), "{answer}");
}

#[test]
fn an_invalid_url_is_rejected_without_its_password() {
    let installation = installation(3);
    let mut command = installation.command(&[MEMORY]);
    command.args(["--compare", "grpc://user:secret@old:8081"]);
    let (code, _, error) = crate::process::output(&mut command, b"");
    assert_eq!(code, 2);
    let expected = r#"error: --compare: "grpc://user:***@old:8081" is not a service; expected grpc://HOST:PORT"#;
    assert!(error.starts_with(expected), "{error}");
}

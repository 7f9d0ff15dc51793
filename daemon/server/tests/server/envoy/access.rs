//! Tokens over gRPC: scopes and policies.

use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_engine::WRONG_TOKEN_DELAY;
use tonic::{Code, Request};

use super::client::{connect, format_result, parse_request};
use super::{config, start};
use crate::http::access::token;
use crate::support::daemon::Daemon;

pub(super) const LIMITS: &str = "
domain: shop
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 100 } }]
";

pub(super) async fn call(daemon: &Daemon, authorization: &[&str], request: &str) -> String {
    let mut request = Request::new(parse_request(request));
    for value in authorization {
        request.metadata_mut().append("authorization", value.parse().unwrap());
    }
    format_result(connect(daemon).await.should_rate_limit(request).await)
}

#[tokio::test]
async fn wrong_tokens_are_answered_after_a_delay_on_each_stream() {
    const STREAMS: usize = 50;
    let mut config = config("", LIMITS);
    config.tokens = vec![token("check", "check", "'*'")];
    let daemon = Daemon::start_with_config(config).await;
    let client = connect(&daemon).await;
    let begin = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..STREAMS {
        let mut request = Request::new(parse_request("shop | user=a"));
        request.metadata_mut().insert("authorization", "Bearer nothing".parse().unwrap());
        let mut client = client.clone();
        calls.spawn(async move { client.should_rate_limit(request).await });
    }
    while let Some(result) = calls.join_next().await {
        assert_eq!(result.unwrap().unwrap_err().code(), Code::Unauthenticated);
    }
    // One after the other, they would take ten seconds.
    let elapsed = begin.elapsed();
    assert!(elapsed >= WRONG_TOKEN_DELAY && elapsed < WRONG_TOKEN_DELAY * 25, "{elapsed:?}");
}

#[tokio::test]
async fn tokens_are_checked_for_scope_and_policy() {
    let mut config = config("", LIMITS);
    config.policies.define("log", "100/min log").unwrap();
    config.tokens = vec![
        token("check", "check", "'*'"),
        token("read", "read", "'*'"),
        token("log", "check", "log"),
        token("shop", "check", "'@envoy.shop'"),
        token("envoy", "check", "'@envoy.*'"),
    ];
    let daemon = Daemon::start_with_config(config).await;
    let (shop, log) = ("shop | user=a", "log | user=a");
    let denied = "PermissionDenied: ";
    for (authorization, request, expected) in [
        (&["Bearer the-secret-of-check"][..], shop, "OK"),
        (&["bearer the-secret-of-check"], log, "OK"),
        (&["Bearer the-secret-of-check"], "unknown | user=a", "OK"),
        (&["Bearer the-secret-of-shop"], shop, "OK"),
        (&["Bearer the-secret-of-envoy"], shop, "OK"),
        (&["Bearer the-secret-of-log"], log, "OK"),
        (&["Bearer the-secret-of-shop"], log, denied),
        (&["Bearer the-secret-of-log"], shop, denied),
        (&["Bearer the-secret-of-read"], shop, denied),
        (&[], shop, "Unauthenticated: a token is required; send it as Authorization: Bearer TOKEN"),
        (&["Bearer nothing"], shop, "Unauthenticated: invalid token; send one that is configured"),
        (&["Basic c2VjcmV0"], shop, "Unauthenticated: "),
        (
            &["Bearer the-secret-of-check", "Bearer the-secret-of-check"],
            shop,
            "Unauthenticated: the header authorization occurs twice; send it once",
        ),
        // Authorization is checked before the request.
        (&["Bearer the-secret-of-read"], "shop", denied),
    ] {
        let response = call(&daemon, authorization, request).await;
        assert!(response.starts_with(expected), "{authorization:?} {request}: {response}");
    }
}

#[tokio::test]
async fn refunds_and_limits_of_requests_need_operators_as_configured() {
    let changes = ["user=a -1", "user=a 9/HOUR", "user=a -1 9/HOUR"];
    for (setting, rules, policies) in
        [("", true, false), ("all", true, true), ("operators", false, false)]
    {
        let setting = match setting {
            "" => String::new(),
            setting => format!("refunds_and_limits: {setting}"),
        };
        let mut config = config(&setting, LIMITS);
        config.policies.define("log", "100/min log").unwrap();
        // A client of a daemon without tokens is no operator either.
        let open = Daemon::start_unchanged(config.clone()).await;
        config.tokens = vec![token("check", "check", "'*'"), token("ops", "check, operate", "'*'")];
        let daemon = Daemon::start_with_config(config).await;
        for (domain, is_open) in [("shop", rules), ("log", policies)] {
            for change in changes {
                let request = format!("{domain} | {change}");
                let row = format!("{setting} {request}");
                let expected = if is_open { "OK" } else { "PermissionDenied: " };
                for (daemon, authorization) in
                    [(&open, &[][..]), (&daemon, &["Bearer the-secret-of-check"])]
                {
                    let response = call(daemon, authorization, &request).await;
                    assert!(response.starts_with(expected), "{row}: {response}");
                    assert!(is_open || response.contains("scope operate"), "{row}: {response}");
                }
                let response = call(&daemon, &["Bearer the-secret-of-ops"], &request).await;
                assert!(response.starts_with("OK"), "{row}: {response}");
            }
            let request = format!(
                r#"{{"domain":"{domain}","descriptors":[{{"entries":[{{"key":"user","value":"b"}}],"isNegativeHits":true}}]}}"#
            );
            let response = open.post("/json", &request).await;
            response.assert(
                if is_open { 200 } else { 403 },
                "",
                format_args!("{setting} {domain}"),
            );
        }
    }
}

#[tokio::test]
async fn without_configured_tokens_every_client_is_served() {
    let daemon = start("", LIMITS).await;
    for authorization in [&[][..], &["Bearer anything"]] {
        assert!(call(&daemon, authorization, "shop | user=a").await.starts_with("OK"));
    }
}

//! The integration test of envoyproxy/ratelimit, with windows of a day, so that none ends during
//! the test.

use crate::client;
use crate::installation::{Installation, Ratelimit, send};

const BASIC: &str = "
domain: basic
descriptors:
  - key: key1
    rate_limit: { unit: second, requests_per_unit: 50 }
";
const ANOTHER: &str = "
domain: another
descriptors:
  - key: key2
    rate_limit: { unit: day, requests_per_unit: 20 }
  - key: key3
    rate_limit: { unit: day, requests_per_unit: 10 }
";

/// Files of the domains `basic` and `another`.
pub(crate) fn installation() -> Installation {
    let installation = Installation::new();
    installation.limits("basic.yaml", BASIC);
    installation.limits("another.yaml", ANOTHER);
    installation
}

/// Checks all scenarios. `is_atomic` states whether a denied request is not charged.
pub(crate) async fn check(ratelimit: &Ratelimit, is_atomic: bool) {
    let mut client = client::connect(ratelimit.grpc()).await;
    let mut request = async |line: &str| client::call(&mut client, line).await;
    assert_eq!(request("unknown | key1=foo").await, "OK | OK");
    assert_eq!(request("basic | key1=foo").await, "OK | OK 50/SECOND 49");
    assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.basic.key1.total_hits"), 1);
    for remaining in (0..20).rev() {
        assert_eq!(request("another | key2=one").await, format!("OK | OK 20/DAY {remaining}"));
    }
    for over in 1..=5 {
        let over_limit = "OVER_LIMIT | OVER_LIMIT 20/DAY 0";
        assert_eq!(request("another | key2=one").await, over_limit);
        assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.another.key2.over_limit"), over);
    }
    assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.another.key2.total_hits"), 25);
    assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.another.key2.near_limit"), 4);
    for number in 1..=10 {
        let (first, second) = (20 - number, 10 - number);
        let expected = format!("OK | OK 20/DAY {first} | OK 10/DAY {second}");
        assert_eq!(request("another | key2=two | key3=two").await, expected);
    }
    for number in 11..=15 {
        let first = if is_atomic { 10 } else { 20 - number };
        let expected = format!("OVER_LIMIT | OK 20/DAY {first} | OVER_LIMIT 10/DAY 0");
        assert_eq!(request("another | key2=two | key3=two").await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_equal_those_of_envoyproxy_ratelimit() {
    for (stop, is_atomic) in [("false", false), ("true", true)] {
        let installation = installation();
        let ratelimit = installation.start(&[
            ("BACKEND_TYPE", "memory"),
            ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", stop),
        ]);
        check(&ratelimit, is_atomic).await;
    }
}

#[test]
fn json_requests_are_accepted() {
    let installation = installation();
    let ratelimit = installation.start(&[("BACKEND_TYPE", "memory")]);
    let store = "memory, at most 1000000 keys and 256MiB, for one replica\n";
    assert!(ratelimit.daemon.greeting.contains(store), "{}", ratelimit.daemon.greeting);
    let request = |domain: &str, entry: &str| {
        format!(r#"{{"domain":"{domain}","descriptors":[{{"entries":[{entry}]}}]}}"#)
    };
    let key3 = request("another", r#"{"key":"key3","value":"v"}"#);
    for (body, times, status, part) in [
        (&*request("unknown", r#"{"key":"k"}"#), 1, 200, r#""overallCode":"OK""#),
        (&*key3, 10, 200, r#""overallCode":"OK""#),
        (&*key3, 1, 429, r#""overallCode":"OVER_LIMIT""#),
        (r#"{"domain":"another"}"#, 1, 400, "Bad Request\n"),
        ("{", 1, 400, "Bad Request\n"),
    ] {
        for _ in 0..times {
            let (found, response) = send(ratelimit.http(), "POST /json", body);
            assert_eq!(found, status, "{body}: {response}");
            assert!(response.replace(' ', "").contains(&part.replace(' ', "")), "{response}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn optional_headers_and_metadata_are_sent_if_enabled() {
    let installation = installation();
    let ratelimit = installation.start(&[
        ("BACKEND_TYPE", "memory"),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_REMAINING_HEADER", "x-left"),
        ("RESPONSE_DYNAMIC_METADATA", "true"),
        ("SHADOW_MODE", "true"),
    ]);
    let mut client = client::connect(ratelimit.grpc()).await;
    let request = client::parse_request("another +11 | key3=v");
    let response = client.should_rate_limit(request).await.unwrap().into_inner();
    // The request is over the limit and passes, because the mode is shadow.
    assert_eq!(client::response_line(&response), "OK | OVER_LIMIT 10/DAY 0");
    let headers: Vec<_> =
        response.response_headers_to_add.iter().map(|header| &*header.key).collect();
    assert_eq!(headers, ["RateLimit-Limit", "x-left", "RateLimit-Reset"]);
    assert_eq!(response.response_headers_to_add[0].value, "10");
    assert!(response.dynamic_metadata.unwrap().fields.contains_key("domain"));
    assert_eq!(ratelimit.stat("ratelimit.service.global_shadow_mode"), 1);
}

#[test]
fn the_json_api_is_served_on_request_only() {
    let installation = installation();
    let memory = [("BACKEND_TYPE", "memory")];
    let json = r#"{"domain":"basic","descriptors":[{"entries":[{"key":"key1","value":"a"}]}]}"#;
    let check = r#"{"policy":"absent","key":"a"}"#;
    for (arguments, message) in
        [(&[][..], "start tollgate ratelimit with --json-api"), (&["--json-api"], "absent")]
    {
        let ratelimit = installation.start_with(&memory, arguments);
        assert_eq!(send(ratelimit.http(), "POST /json", json).0, 200, "{arguments:?}");
        let (status, body) = send(ratelimit.http(), "POST /v1/check", check);
        assert!(status == 404 && body.contains(message), "{arguments:?}: {status} {body}");
        let hidden = send(ratelimit.http(), "GET /openapi.json", "").0;
        assert_eq!(hidden == 404, arguments.is_empty(), "{arguments:?}: {hidden}");
    }
}

#[test]
fn operators_on_this_machine_act_if_the_daemon_permits_it() {
    let installation = installation();
    let memory = [("BACKEND_TYPE", "memory")];
    let block = r#"{"domain":"basic","descriptor":"key1=a"}"#;
    let json = r#"{"domain":"basic","descriptors":[{"entries":[{"key":"key1","value":"a"}]}]}"#;
    for (argument, status, text) in [
        ("--json-api", 403, "--operators loopback of tollgate ratelimit"),
        ("--operators=loopback", 200, r#""changed":true"#),
    ] {
        let mut ratelimit = installation.start_with(&memory, &[argument]);
        let (code, body) = send(ratelimit.http(), "POST /v1/block", block);
        assert!(code == status && body.contains(text), "{argument}: {code} {body}");
        let denied = send(ratelimit.http(), "POST /json", json).0 == 429;
        assert_eq!(denied, status == 200, "{argument}");
        if status == 200 {
            ratelimit.read_log_until("every program on this machine may block and reset keys");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_descriptor_without_a_rule_is_logged_at_debug() {
    let installation = installation();
    let mut ratelimit = installation.start(&[("BACKEND_TYPE", "memory"), ("LOG_LEVEL", "debug")]);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::call(&mut client, "basic | nothing=x").await, "OK | OK");
    let logged = ratelimit.read_log_until("no rule matches the descriptor");
    assert!(logged.contains("domain=\"basic\"") && logged.contains("nothing=x"), "{logged}");
}

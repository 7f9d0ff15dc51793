//! What the reference's own test of a whole service asks, in windows of a day, which no test is
//! long enough to see the end of.

use crate::client;
use crate::process::{Folder, Ratelimit, ask};

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
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    folder.limits("basic.yaml", BASIC);
    folder.limits("another.yaml", ANOTHER);
    folder
}

/// Asks everything; `stops` is whether a denied request is charged nothing.
pub(crate) async fn check(ratelimit: &Ratelimit, stops: bool) {
    let mut client = client::connect(ratelimit.grpc()).await;
    let mut answer = async |request: &str| client::ask(&mut client, request).await;
    assert_eq!(answer("unknown | key1=foo").await, "OK | OK");
    assert_eq!(answer("basic | key1=foo").await, "OK | OK 50/SECOND 49");
    assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.basic.key1.total_hits"), 1);
    for left in (0..20).rev() {
        assert_eq!(answer("another | key2=one").await, format!("OK | OK 20/DAY {left}"));
    }
    for over in 1..=5 {
        let over_limit = "OVER_LIMIT | OVER_LIMIT 20/DAY 0";
        assert_eq!(answer("another | key2=one").await, over_limit);
        assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.another.key2.over_limit"), over);
    }
    assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.another.key2.total_hits"), 25);
    assert_eq!(ratelimit.stat("ratelimit.service.rate_limit.another.key2.near_limit"), 4);
    for asked in 1..=10 {
        let (first, second) = (20 - asked, 10 - asked);
        let expected = format!("OK | OK 20/DAY {first} | OK 10/DAY {second}");
        assert_eq!(answer("another | key2=two | key3=two").await, expected);
    }
    for asked in 11..=15 {
        let first = if stops { 10 } else { 20 - asked };
        let expected = format!("OVER_LIMIT | OK 20/DAY {first} | OVER_LIMIT 10/DAY 0");
        assert_eq!(answer("another | key2=two | key3=two").await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_as_by_the_reference() {
    for (stop, stops) in [("false", false), ("true", true)] {
        let folder = folder();
        let ratelimit = folder.start(&[
            ("BACKEND_TYPE", "memory"),
            ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", stop),
        ]);
        check(&ratelimit, stops).await;
    }
}

#[test]
fn requests_may_come_as_json() {
    let folder = folder();
    let ratelimit = folder.start(&[("BACKEND_TYPE", "memory")]);
    let request = |domain: &str, entry: &str| {
        format!(r#"{{"domain":"{domain}","descriptors":[{{"entries":[{entry}]}}]}}"#)
    };
    let key3 = request("another", r#"{"key":"key3","value":"v"}"#);
    for (body, times, status, said) in [
        (&*request("unknown", r#"{"key":"k"}"#), 1, 200, r#""overallCode":"OK""#),
        (&*key3, 10, 200, r#""overallCode":"OK""#),
        (&*key3, 1, 429, r#""overallCode":"OVER_LIMIT""#),
        (r#"{"domain":"another"}"#, 1, 400, "Bad Request\n"),
        ("{", 1, 400, "Bad Request\n"),
    ] {
        for _ in 0..times {
            let (got, answer) = ask(ratelimit.http(), "POST /json", body);
            assert_eq!(got, status, "{body}: {answer}");
            assert!(answer.replace(' ', "").contains(&said.replace(' ', "")), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_on_is_told_to_envoy() {
    let folder = folder();
    let ratelimit = folder.start(&[
        ("BACKEND_TYPE", "memory"),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_REMAINING_HEADER", "x-left"),
        ("RESPONSE_DYNAMIC_METADATA", "true"),
        ("SHADOW_MODE", "true"),
    ]);
    let mut client = client::connect(ratelimit.grpc()).await;
    let request = client::request_of("another +11 | key3=v");
    let answer = client.should_rate_limit(request).await.unwrap().into_inner();
    // It is over, and passes: all do.
    assert_eq!(client::line_of(&answer), "OK | OVER_LIMIT 10/DAY 0");
    let headers: Vec<_> = answer
        .response_headers_to_add
        .iter()
        .map(|response_headers_to_add| &*response_headers_to_add.key)
        .collect();
    assert_eq!(headers, ["RateLimit-Limit", "x-left", "RateLimit-Reset"]);
    assert_eq!(answer.response_headers_to_add[0].value, "10");
    assert!(answer.dynamic_metadata.unwrap().fields.contains_key("domain"));
    assert_eq!(ratelimit.stat("ratelimit.service.global_shadow_mode"), 1);
}

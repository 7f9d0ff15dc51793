//! `POST /json`: the service as JSON, with the bodies and statuses of envoyproxy/ratelimit.

use tollgate_testkit::Events;

use super::start;
use crate::http::access::{bearer, token};
use crate::support::daemon::Daemon;
use crate::support::parse_rows;

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 2, name: per-user } }
  - { key: free, rate_limit: { unlimited: true } }
";

/// Requests, the statuses of their responses, and the bodies of some.
const RESPONSES: &str = r#"
> {"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}
< 200 {"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"per-user","requestsPerUnit":2,"unit":"MINUTE"},"limitRemaining":1,"durationUntilReset":"20s"}]}
> {"domain":"domain","hits_addend":2,"descriptors":[{"entries":[{"key":"user","value":"a"}]},{"entries":[{"key":"free"}]},{}]}
< 429
> {"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}],"hitsAddend":"2"}]}
< 429
> {"domain":"domain","descriptors":[{"entries":[{"key":"free"}]},{}]}
< 200 {"overallCode":"OK","statuses":[{"code":"OK","limitRemaining":4294967295},{"code":"OK"}]}
> {"domain":"unknown","descriptors":[{}]}
< 200 {"overallCode":"OK","statuses":[{"code":"OK"}]}
"#;

#[tokio::test]
async fn responses_match_envoyproxy_ratelimit() {
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = start(charging, LIMITS).await;
        for (request, expected) in parse_rows(RESPONSES, 5) {
            let (status, body) = expected.split_once(' ').unwrap_or((expected, ""));
            let response = daemon.post("/json", request).await;
            response.assert(status.parse().unwrap(), body, request);
            assert_eq!(response.header("content-type"), Some("application/json"), "{request}");
            let is_over_limit = response.body.starts_with(r#"{"overallCode":"OVER_LIMIT","#);
            assert_eq!(is_over_limit, response.status == 429);
            assert!(body.is_empty() || response.body == body, "{request}: {}", response.body);
        }
        for request in [
            "",
            "{",
            r#"{"domain":"domain","descriptors":[{"nothing":1}]}"#,
            "{}",
            r#"{"domain":"domain"}"#,
            r#"{"descriptors":[{}]}"#,
        ] {
            let response = daemon.post("/json", request).await;
            assert_eq!((response.status, &*response.body), (400, "Bad Request\n"), "{request}");
            assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        }
    }
}

#[tokio::test]
async fn the_reason_of_a_bad_request_is_logged() {
    let events = Events::record();
    let daemon = start("", LIMITS).await;
    for request in [r#"{"domain":"domain","descriptor":[]}"#, "{"] {
        daemon.post("/json", request).await.assert(400, "", request);
    }
    let warnings: Vec<_> =
        events.take().into_iter().filter(|(level, ..)| level == "WARN").collect();
    // One line for many requests.
    let [(_, _, fields)] = &*warnings else { panic!("{warnings:?}") };
    let error = fields["error"].as_str().unwrap();
    assert!(error.starts_with("unknown field `descriptor`, expected"), "{fields}");
}

#[tokio::test]
async fn headers_and_metadata_are_included() {
    let daemon = start("response_headers: true, dynamic_metadata: true", LIMITS).await;
    let request = r#"{"domain":"domain","hitsAddend":1,"descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    let response = daemon.post("/json", request).await.body;
    for part in [
        r#""responseHeadersToAdd":[{"key":"ratelimit-policy","value":"\"@envoy.domain\";q=2;w=60"},{"key":"ratelimit","value":"\"@envoy.domain\";r=1;t=30"}]"#,
        r#""dynamicMetadata":{"descriptors":[{"entries":["user=a"]}],"domain":"domain","hitsAddend":1}"#,
    ] {
        assert!(response.contains(part), "{response}");
    }
}

#[tokio::test]
async fn a_token_is_required_when_tokens_are_configured() {
    let daemon = Daemon::start_with_options(|config| {
        config.tokens = vec![token("it", "check", "log")];
    })
    .await;
    let request = |domain: &str| {
        format!(r#"{{"domain":"{domain}","descriptors":[{{"entries":[{{"key":"k"}}]}}]}}"#)
    };
    for (token, domain, status) in
        [("", "log", 401), ("it", "log", 200), ("it", "bucket", 403), ("other", "log", 401)]
    {
        let header = if token.is_empty() { String::new() } else { bearer(token) };
        let response = daemon.post_with("/json", &header, &request(domain)).await;
        response.assert(status, "", format_args!("{token} {domain}"));
    }
}

#[tokio::test]
async fn the_documented_response_is_current() {
    let page = include_str!("../../../../../docs/envoy-rate-limit-service.md");
    let request = page.split("/json -d '").nth(1).unwrap().split('\'').next().unwrap();
    let expected = page.lines().find(|line| line.starts_with(r#"{"overallCode""#)).unwrap();
    let daemon = Daemon::start_with("policies: { login: { limits: [5/min log] } }").await;
    assert_eq!(daemon.post("/json", request).await.body, expected);
}

//! `POST /json`: the service as JSON, with the bodies and statuses of envoyproxy/ratelimit.

use super::start;
use crate::http::access::{bearer, token};
use crate::support::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 2, name: per-user } }
  - { key: free, rate_limit: { unlimited: true } }
";

#[tokio::test]
async fn responses_match_envoyproxy_ratelimit() {
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = start(charging, LIMITS).await;
        for (request, status, expected) in [
            (
                r#"{"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#,
                200,
                r#"{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"per-user","requestsPerUnit":2,"unit":"MINUTE"},"limitRemaining":1,"durationUntilReset":"20s"}]}"#,
            ),
            (
                r#"{"domain":"domain","hits_addend":2,"descriptors":[{"entries":[{"key":"user","value":"a"}]},{"entries":[{"key":"free"}]},{}]}"#,
                429,
                "",
            ),
            (
                r#"{"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}],"hitsAddend":"2"}]}"#,
                429,
                "",
            ),
            (
                r#"{"domain":"domain","descriptors":[{"entries":[{"key":"free"}]},{}]}"#,
                200,
                r#"{"overallCode":"OK","statuses":[{"code":"OK","limitRemaining":4294967295},{"code":"OK"}]}"#,
            ),
            (
                r#"{"domain":"unknown","descriptors":[{}]}"#,
                200,
                r#"{"overallCode":"OK","statuses":[{"code":"OK"}]}"#,
            ),
            ("", 400, "Bad Request\n"),
            ("{", 400, "Bad Request\n"),
            (r#"{"domain":"domain","descriptors":[{"nothing":1}]}"#, 400, "Bad Request\n"),
            ("{}", 400, "Bad Request\n"),
            (r#"{"domain":"domain"}"#, 400, "Bad Request\n"),
            (r#"{"descriptors":[{}]}"#, 400, "Bad Request\n"),
        ] {
            let response = daemon.post("/json", request).await;
            assert_eq!(response.status, status, "{request}: {}", response.body);
            if !expected.is_empty() {
                assert_eq!(response.body, expected, "{request}");
            }
            let kind = if status == 400 { "text/plain; charset=utf-8" } else { "application/json" };
            assert_eq!(response.header("content-type"), Some(kind), "{request}");
            let is_over_limit = response.body.starts_with(r#"{"overallCode":"OVER_LIMIT","#);
            assert_eq!(is_over_limit, status == 429);
        }
    }
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
        assert_eq!(response.status, status, "{token} {domain}: {}", response.body);
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

//! `POST /json`: the same service as JSON, with the reference's answers and statuses.

use super::start;
use crate::access::{bearer, token};
use crate::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 2, name: per-user } }
  - { key: free, rate_limit: { unlimited: true } }
";

#[tokio::test]
async fn the_answer_is_the_reference_s() {
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = start(charging, LIMITS).await;
        for (asked, status, answer) in [
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
            let told = daemon.post("/json", asked).await;
            assert_eq!(told.status, status, "{asked}: {}", told.body);
            if !answer.is_empty() {
                assert_eq!(told.body, answer, "{asked}");
            }
            let kind = told.header("content-type").unwrap();
            let expected =
                if status == 400 { "text/plain; charset=utf-8" } else { "application/json" };
            assert_eq!(kind, expected, "{asked}");
            assert_eq!(told.body.starts_with(r#"{"overallCode":"OVER_LIMIT","#), status == 429);
        }
    }
}

#[tokio::test]
async fn it_tells_headers_and_metadata_too() {
    let daemon = start("response_headers: true, dynamic_metadata: true", LIMITS).await;
    let asked = r#"{"domain":"domain","hitsAddend":1,"descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    let told = daemon.post("/json", asked).await.body;
    for part in [
        r#""responseHeadersToAdd":[{"key":"ratelimit-policy","value":"\"@envoy.domain\";q=2;w=60"},{"key":"ratelimit","value":"\"@envoy.domain\";r=1;t=30"}]"#,
        r#""dynamicMetadata":{"descriptors":[{"entries":["user=a"]}],"domain":"domain","hitsAddend":1}"#,
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test]
async fn a_token_is_needed_where_there_are_some() {
    let daemon = Daemon::start_changed(|x| x.tokens = vec![token("it", "check", "log")]).await;
    let asked = |domain: &str| {
        format!(r#"{{"domain":"{domain}","descriptors":[{{"entries":[{{"key":"k"}}]}}]}}"#)
    };
    for (token, domain, status) in
        [("", "log", 401), ("it", "log", 200), ("it", "bucket", 403), ("other", "log", 401)]
    {
        let header = if token.is_empty() { String::new() } else { bearer(token) };
        let answer = daemon.post_with("/json", &header, &asked(domain)).await;
        assert_eq!(answer.status, status, "{token} {domain}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_page_shows_what_is_answered() {
    let page = include_str!("../../../../../docs/envoy-rate-limit-service.md");
    let asked = page.split("/json -d '").nth(1).unwrap().split('\'').next().unwrap();
    let answer = page.lines().find(|line| line.starts_with(r#"{"overallCode""#)).unwrap();
    let daemon = Daemon::start_with("policies: { login: { limits: [5/min log] } }").await;
    assert_eq!(daemon.post("/json", asked).await.body, answer);
}

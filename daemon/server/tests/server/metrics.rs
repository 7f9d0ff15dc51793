//! The `/metrics` page.

use tollgate_testkit::Server;

use crate::support::client::{Client, Response};
use crate::support::daemon::Daemon;
use crate::support::eventually;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Reads the page with this `Accept` header, if it is not empty.
pub(crate) async fn scrape(daemon: &Daemon, accept: &str) -> Response {
    let accept = if accept.is_empty() { String::new() } else { format!("accept: {accept}") };
    let mut client = Client::connect(daemon.metrics).await;
    client.request_with("GET", "/metrics", &accept, "").await.unwrap()
}

pub(crate) async fn page(daemon: &Daemon) -> String {
    let response = scrape(daemon, "").await;
    assert_eq!(response.status, 200);
    response.body
}

fn value<'a>(page: &'a str, series: &str) -> Option<&'a str> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
}

/// The series that counts the decisions of a policy with an answer, over a protocol.
pub(crate) fn decisions(policy: &str, answer: &str, surface: &str) -> String {
    format!(
        "tollgate_decisions_total{{policy=\"{policy}\",answer=\"{answer}\",surface=\"{surface}\"}}"
    )
}

/// Asserts the values of series.
pub(crate) fn assert_values(page: &str, rows: &[(&str, &str)]) {
    for (series, expected) in rows {
        assert_eq!(value(page, series), Some(*expected), "{series}\n{page}");
    }
}

#[tokio::test]
async fn decisions_are_counted_once_by_policy_and_answer() {
    let daemon = Daemon::start().await;
    for (path, body) in [
        ("/v1/check", r#"{"policy":"bucket","key":"k"}"#),
        ("/v1/check", r#"{"policy":"bucket","key":"k"}"#),
        ("/v1/check", r#"{"policy":"bucket","key":"k"}"#),
        ("/v1/check", r#"{"policy":"bucket","key":"k","cost":3}"#),
        ("/v1/take", r#"{"policy":"log","key":"k","cost":2}"#),
        ("/v1/check", r#"{"policy":"ghost","key":"k"}"#),
        ("/v1/check", r#"{"policy":"ghost","key":"k"}"#),
        ("/v1/check", r#"{"limit":"1/h log","key":"k"}"#),
        ("/v1/check", r#"{"checks":[{"policy":"queue","key":"k"},{"policy":"bucket","key":"k"}]}"#),
        // These are not decisions.
        ("/v1/peek", r#"{"policy":"bucket","key":"k"}"#),
        ("/v1/reset", r#"{"policy":"pair","key":"k"}"#),
        // Invalid requests are not decisions either.
        ("/v1/check", r#"{"policy":"missing","key":"k"}"#),
        ("/v1/check", "{"),
    ] {
        daemon.post(path, body).await;
    }
    for path in ["/livez", "/readyz"] {
        daemon.connect().await.get(path).await.unwrap();
    }
    let page = page(&daemon).await;
    let decisions = |policy, answer| decisions(policy, answer, "http");
    assert_values(
        &page,
        &[
            (&decisions("bucket", "allowed"), "2"),
            (&decisions("bucket", "denied"), "2"),
            (&decisions("bucket", "never"), "1"),
            (&decisions("bucket", "error"), "0"),
            // Each check counts by its own result: `queue` was allowed although `bucket` denied.
            (&decisions("queue", "allowed"), "1"),
            (&decisions("log", "allowed"), "1"),
            (&decisions("ghost", "allowed"), "1"),
            (&decisions("ghost", "shadow_denied"), "1"),
            (&decisions("_inline", "allowed"), "1"),
            ("tollgate_decision_duration_seconds_count{surface=\"http\"}", "9"),
            ("tollgate_http_requests_total{listener=\"http\",status=\"2xx\"}", "8"),
            ("tollgate_http_requests_total{listener=\"http\",status=\"4xx\"}", "5"),
            ("tollgate_connections_accepted_total{listener=\"http\"}", "15"),
            ("tollgate_connections{listener=\"metrics\"}", "1"),
            ("tollgate_audit_total{verb=\"reset\"}", "1"),
            ("tollgate_store_up", "1"),
            ("tollgate_policies", "7"),
            ("tollgate_keys", "4"),
            ("tollgate_draining", "0"),
            ("tollgate_config_last_reload_successful", "1"),
        ],
    );
    for untouched in [decisions("pair", "allowed"), decisions("_other", "allowed")] {
        assert_eq!(value(&page, &untouched), None);
    }
    assert!(!page.contains("tollgate_store_batch_requests"), "memory has no batches\n{page}");
}

#[tokio::test]
async fn labels_contain_no_client_input() {
    let daemon = Daemon::start().await;
    const MARK: &str = "Zq7xSecret";
    for body in [
        r#"{"policy":"bucket","key":"~"}"#,
        r#"{"policy":"bucket","key":"~\"} 1\n~ 2"}"#,
        r#"{"policy":"~","key":"k"}"#,
        r#"{"policy":"bucket\"} 1\n~","key":"k"}"#,
        r#"{"policy":"=1/h ~","key":"k"}"#,
        r#"{"limit":"1/h log ~","key":"~"}"#,
        r#"{"policy":"bucket","key":"~","note":"~","request_id":"~"}"#,
        r#"{"~":"~"}"#,
    ] {
        daemon.post("/v1/check", &body.replace('~', MARK)).await;
        daemon.post("/v1/block", &body.replace('~', MARK)).await;
        daemon.post(&format!("/v1/{MARK}"), body).await;
    }
    let mut client = daemon.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: ~\r\nuser-agent: ~\r\ntraceparent: 00-~-~-01\r\n";
    let body = r#"{"policy":"bucket","key":"k","cost":9}"#;
    let request =
        format!("{}content-length: {}\r\n\r\n{body}", head.replace('~', MARK), body.len());
    client.send(&request).await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status, 422);
    for accept in ["", "application/openmetrics-text"] {
        let page = scrape(&daemon, accept).await.body;
        assert!(page.contains("policy=\"bucket\""), "{page}");
        assert!(!page.contains(MARK), "{page}");
        assert!(!page.contains(" # {"), "{page}");
    }
}

#[tokio::test]
async fn denials_with_a_trace_context_become_exemplars() {
    let daemon = Daemon::start().await;
    for cost in [1, 9] {
        let body = format!(r#"{{"policy":"bucket","key":"k","cost":{cost}}}"#);
        let trace = if cost == 9 { TRACE.to_owned() } else { TRACE.replace('a', "b") };
        let header = format!("traceparent: 00-{trace}-b7ad6b7169203331-01");
        daemon.post_with("/v1/check", &header, &body).await;
    }
    let classic = scrape(&daemon, "text/plain").await;
    assert_eq!(classic.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(!classic.body.contains("trace_id") && !classic.body.contains("# EOF"));
    let openmetrics = scrape(&daemon, "application/openmetrics-text;version=1.0.0").await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(openmetrics.header("content-type"), Some(kind));
    let exemplars: Vec<_> = openmetrics.body.lines().filter(|line| line.contains(" # {")).collect();
    let denial = format!(" # {{trace_id=\"{TRACE}\"}} 0.");
    let is_denial =
        |line: &&str| line.contains(&denial) && line.contains("_bucket{surface=\"http\"");
    // A slow admitted request becomes an exemplar too.
    assert!(exemplars.iter().any(is_denial), "{}", openmetrics.body);
    assert!(openmetrics.body.ends_with("\n# EOF\n"));
}

#[tokio::test]
async fn the_metrics_listener_serves_only_metrics_and_probes() {
    let daemon = Daemon::start().await;
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/v1/check", 404),
        ("POST", "/metrics", 405),
        ("HEAD", "/x", 404),
    ] {
        let mut client = Client::connect(daemon.metrics).await;
        client
            .send(&format!("{method} {path} HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n"))
            .await
            .unwrap();
        let head = client.0;
        let mut line = [0; 12];
        tokio::io::AsyncReadExt::read_exact(&mut { head }, &mut line).await.unwrap();
        assert_eq!(&line, format!("HTTP/1.1 {status}").as_bytes(), "{method} {path}");
    }
    assert_eq!(daemon.connect().await.get("/metrics").await.unwrap().status, 404);
}

#[tokio::test]
async fn store_failures_are_counted() {
    let server = Server::start();
    let yaml = format!(
        "store: {{ url: \"{}\", deadline: 5s }}\npolicies: {{ open: {{ limits: [9/h], on_store_error: allow }}, closed: {{ limits: [9/h] }} }}",
        server.url()
    );
    let daemon = Daemon::start_on_store(&yaml).await;
    let post = async |operation: &str, policy: &str| {
        daemon
            .post(&format!("/v1/{operation}"), &format!(r#"{{"policy":"{policy}","key":"k"}}"#))
            .await
    };
    assert_eq!(post("check", "open").await.status, 200);
    wait_for_value(&daemon, "tollgate_store_up", "1").await;
    let before = page(&daemon).await;
    assert_values(
        &before,
        &[
            ("tollgate_store_batch_requests_bucket{le=\"1.0\"}", "1"),
            ("tollgate_store_batch_requests_count", "1"),
            ("tollgate_store_duration_seconds_count", "1"),
        ],
    );
    assert_eq!(value(&before, "tollgate_keys"), None, "keys on Redis are not counted");
    server.kill();
    wait_for_value(&daemon, "tollgate_store_up", "0").await;
    post("check", "open").await;
    post("check", "closed").await;
    let after = page(&daemon).await;
    for (policy, answer) in [("open", "allowed"), ("closed", "denied")] {
        let series =
            format!("tollgate_degraded_decisions_total{{policy=\"{policy}\",answer=\"{answer}\"}}");
        assert_eq!(value(&after, &series), Some("1"), "{after}");
    }
    assert!(after.contains("tollgate_store_errors_total{kind=\""), "{after}");
    server.restart();
    wait_for_value(&daemon, "tollgate_store_up", "1").await;
}

/// Scrapes until a series has this value.
async fn wait_for_value(daemon: &Daemon, series: &str, expected: &str) {
    eventually(series, async || value(&page(daemon).await, series) == Some(expected)).await;
}

//! What `/metrics` says of what was asked.

use std::net::SocketAddr;

use tollgate_testkit::Server;

use crate::client::{Answer, Client};
use crate::daemon::Daemon;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Reads a page as the scraper that says so accepts it.
pub(crate) async fn scrape(address: SocketAddr, accept: &str) -> Answer {
    let mut client = Client::connect(address).await;
    let accept = if accept.is_empty() { String::new() } else { format!("accept: {accept}\r\n") };
    client.send(&format!("GET /metrics HTTP/1.1\r\nhost: t\r\n{accept}\r\n")).await.unwrap();
    client.answer().await.unwrap()
}

pub(crate) async fn page(daemon: &Daemon) -> String {
    let answer = scrape(daemon.scraped, "").await;
    assert_eq!(answer.status, 200);
    answer.body
}

fn value<'a>(page: &'a str, series: &str) -> Option<&'a str> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
}

pub(crate) fn assert_says(page: &str, rows: &[(&str, &str)]) {
    for (series, expected) in rows {
        assert_eq!(value(page, series), Some(*expected), "{series}\n{page}");
    }
}

#[tokio::test]
async fn every_decision_is_counted_once_under_its_policy_and_answer() {
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
        // Neither is a decision.
        ("/v1/peek", r#"{"policy":"bucket","key":"k"}"#),
        ("/v1/reset", r#"{"policy":"pair","key":"k"}"#),
        // Nor is what cannot be decided.
        ("/v1/check", r#"{"policy":"nobody","key":"k"}"#),
        ("/v1/check", "{"),
    ] {
        daemon.post(path, body).await;
    }
    for path in ["/livez", "/readyz"] {
        daemon.connect().await.get(path).await.unwrap();
    }
    let page = page(&daemon).await;
    let of = |policy, answer| {
        format!(
            "tollgate_decisions_total{{policy=\"{policy}\",answer=\"{answer}\",surface=\"http\"}}"
        )
    };
    assert_says(
        &page,
        &[
            (&of("bucket", "allowed"), "2"),
            (&of("bucket", "denied"), "2"),
            (&of("bucket", "never"), "1"),
            (&of("bucket", "error"), "0"),
            // It would have passed: each check is counted by its own answer.
            (&of("queue", "allowed"), "1"),
            (&of("log", "allowed"), "1"),
            (&of("ghost", "allowed"), "1"),
            (&of("ghost", "shadow_denied"), "1"),
            (&of("_inline", "allowed"), "1"),
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
    for untouched in [of("pair", "allowed"), of("_other", "allowed")] {
        assert_eq!(value(&page, &untouched), None);
    }
    assert!(!page.contains("tollgate_store_batch_requests"), "memory has no batches\n{page}");
}

#[tokio::test]
async fn no_label_carries_what_a_caller_chose() {
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
    assert_eq!(client.answer().await.unwrap().status, 422);
    for accept in ["", "application/openmetrics-text"] {
        let page = scrape(daemon.scraped, accept).await.body;
        assert!(page.contains("policy=\"bucket\""), "{page}");
        assert!(!page.contains(MARK), "{page}");
        assert!(!page.contains(" # {"), "{page}");
    }
}

#[tokio::test]
async fn a_denial_with_a_trace_is_an_exemplar_where_there_are_any() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    for cost in [1, 9] {
        let body = format!(r#"{{"policy":"bucket","key":"k","cost":{cost}}}"#);
        let trace = if cost == 9 { TRACE.to_owned() } else { TRACE.replace('a', "b") };
        let head = format!(
            "POST /v1/check HTTP/1.1\r\nhost: t\r\ntraceparent: 00-{trace}-b7ad6b7169203331-01\r\n"
        );
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        client.send(&request).await.unwrap();
        client.answer().await.unwrap();
    }
    let classic = scrape(daemon.scraped, "text/plain").await;
    assert_eq!(classic.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(!classic.body.contains("trace_id") && !classic.body.contains("# EOF"));
    let openmetrics = scrape(daemon.scraped, "application/openmetrics-text;version=1.0.0").await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(openmetrics.header("content-type"), Some(kind));
    let marked: Vec<_> = openmetrics.body.lines().filter(|line| line.contains(" # {")).collect();
    let denial = format!(" # {{trace_id=\"{TRACE}\"}} 0.");
    let are_denials =
        |text: &&str| text.contains(&denial) && text.contains("_bucket{surface=\"http\"");
    // One that was admitted is marked too if it was slow.
    assert!(marked.iter().any(are_denials), "{}", openmetrics.body);
    assert!(openmetrics.body.ends_with("\n# EOF\n"));
}

#[tokio::test]
async fn the_listener_answers_scrapes_only() {
    let daemon = Daemon::start().await;
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/v1/check", 404),
        ("POST", "/metrics", 405),
        ("HEAD", "/x", 404),
    ] {
        let mut client = Client::connect(daemon.scraped).await;
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
async fn a_store_that_is_away_shows() {
    let server = Server::start();
    let yaml = format!(
        "store: {{ url: \"{}\", deadline: 5s }}\npolicies: {{ open: {{ limits: [9/h], on_store_error: allow }}, closed: {{ limits: [9/h] }} }}",
        server.url()
    );
    let daemon = Daemon::start_on_store(&yaml).await;
    let ask = async |verb: &str, policy: &str| {
        daemon.post(&format!("/v1/{verb}"), &format!(r#"{{"policy":"{policy}","key":"k"}}"#)).await
    };
    assert_eq!(ask("check", "open").await.status, 200);
    until(&daemon, "tollgate_store_up", "1").await;
    let before = page(&daemon).await;
    assert_says(
        &before,
        &[
            ("tollgate_store_batch_requests_bucket{le=\"1.0\"}", "1"),
            ("tollgate_store_batch_requests_count", "1"),
            ("tollgate_store_duration_seconds_count", "1"),
        ],
    );
    assert_eq!(value(&before, "tollgate_keys"), None, "the keys of Redis are not ours to count");
    server.kill();
    until(&daemon, "tollgate_store_up", "0").await;
    ask("check", "open").await;
    ask("check", "closed").await;
    let after = page(&daemon).await;
    for (policy, answer) in [("open", "allowed"), ("closed", "denied")] {
        let series =
            format!("tollgate_degraded_decisions_total{{policy=\"{policy}\",answer=\"{answer}\"}}");
        assert_eq!(value(&after, &series), Some("1"), "{after}");
    }
    assert!(after.contains("tollgate_store_errors_total{kind=\""), "{after}");
    server.restart();
    until(&daemon, "tollgate_store_up", "1").await;
}

/// Scrapes until a series has this value.
async fn until(daemon: &Daemon, series: &str, expected: &str) {
    for _ in 0..2_000 {
        if value(&page(daemon).await, series) == Some(expected) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{series} does not become {expected}");
}

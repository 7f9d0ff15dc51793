//! The `/metrics` page.

use tokio::io::AsyncReadExt;
use tollgate_daemon::Config;
use tollgate_testkit::{Cluster, Server};

use crate::envoy;
use crate::resp::RespClient;
use crate::support::client::{Client, Response, encode_request};
use crate::support::daemon::Daemon;
use crate::support::{eventually, wait_until_ready};

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

fn has_line(page: &str, line: &str) -> bool {
    page.lines().any(|other| other == line)
}

/// Asserts that the page has each of these lines.
pub(crate) fn assert_lines(page: &str, lines: &str) {
    for line in lines.trim().lines() {
        assert!(has_line(page, line), "{line}\n{page}");
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
    // Each check counts by its own result: `queue` was allowed although `bucket` denied.
    let lines = r#"
tollgate_decisions_total{policy="bucket",answer="allowed",surface="http"} 2
tollgate_decisions_total{policy="bucket",answer="denied",surface="http"} 2
tollgate_decisions_total{policy="bucket",answer="never",surface="http"} 1
tollgate_decisions_total{policy="bucket",answer="error",surface="http"} 0
tollgate_decisions_total{policy="queue",answer="allowed",surface="http"} 1
tollgate_decisions_total{policy="log",answer="allowed",surface="http"} 1
tollgate_decisions_total{policy="ghost",answer="allowed",surface="http"} 1
tollgate_decisions_total{policy="ghost",answer="shadow_denied",surface="http"} 1
tollgate_decisions_total{policy="_inline",answer="allowed",surface="http"} 1
tollgate_decision_duration_seconds_count{surface="http"} 9
tollgate_http_requests_total{listener="http",status="2xx"} 8
tollgate_http_requests_total{listener="http",status="4xx"} 5
tollgate_connections_accepted_total{listener="http"} 15
tollgate_connections{listener="metrics"} 1
tollgate_audit_total{verb="reset"} 1
tollgate_store_up 1
tollgate_policies 9
tollgate_keys 4
tollgate_draining 0
tollgate_config_last_reload_successful 1
"#;
    assert_lines(&page, lines);
    for untouched in [r#"policy="pair""#, r#"policy="_other""#] {
        assert!(!page.contains(untouched), "{page}");
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
    let headers = format!("user-agent: {MARK}\r\ntraceparent: 00-{MARK}-{MARK}-01");
    let body = r#"{"policy":"bucket","key":"k","cost":9}"#;
    let request = encode_request("POST", "/v1/check", &headers, body);
    let request = request.replace("host: localhost", &format!("host: {MARK}.localhost"));
    assert_eq!(daemon.send(&request).await.read_response().await.unwrap().status, 422);
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
        client.send(&encode_request(method, path, "", "")).await.unwrap();
        let mut line = [0; 12];
        client.0.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, format!("HTTP/1.1 {status}").as_bytes(), "{method} {path}");
    }
    assert_eq!(daemon.connect().await.get("/metrics").await.unwrap().status, 404);
}

#[tokio::test]
async fn store_failures_are_counted() {
    let server = Server::start();
    let open = "{ limits: [9/h], on_store_error: allow }";
    let yaml =
        format!("policies: {{ open: {open}, closed: {{ limits: [9/h], on_store_error: deny }} }}");
    let daemon = Daemon::start_on(&server, &yaml).await;
    let check = async |policy: &str| {
        daemon.post("/v1/check", &format!(r#"{{"policy":"{policy}","key":"k"}}"#)).await
    };
    assert_eq!(check("open").await.status, 200);
    wait_for_line(&daemon, "tollgate_store_up 1").await;
    let before = page(&daemon).await;
    let lines = r#"
tollgate_store_batch_requests_bucket{le="1.0"} 1
tollgate_store_batch_requests_count 1
tollgate_store_duration_seconds_count 1
"#;
    assert_lines(&before, lines);
    assert!(!before.contains("\ntollgate_keys "), "keys on Redis are not counted");
    server.kill();
    wait_for_line(&daemon, "tollgate_store_up 0").await;
    check("open").await;
    check("closed").await;
    let after = page(&daemon).await;
    let lines = r#"
tollgate_degraded_decisions_total{policy="open",answer="allowed"} 1
tollgate_degraded_decisions_total{policy="closed",answer="denied"} 1
"#;
    assert_lines(&after, lines);
    assert!(after.contains("tollgate_store_errors_total{kind=\""), "{after}");
    server.restart();
    wait_for_line(&daemon, "tollgate_store_up 1").await;
}

#[tokio::test]
async fn each_node_has_metrics_until_it_leaves() {
    let cluster = Cluster::start(3, 1);
    let url = cluster.url();
    let yaml = format!(
        "store: {{ url: \"{url}\", deadline: 5s }}\npolicies: {{ api: {{ limits: [9/h] }} }}"
    );
    let daemon = Daemon::start_on_store(Config::from_yaml(&yaml).unwrap()).await;
    let killed = cluster.primaries()[0];
    let address = cluster.nodes()[killed].address();
    let sample =
        |metric, value| format!("tollgate_store_node_{metric}{{address=\"{address}\"}} {value}");
    // A connection that is being made could end the outage for a moment, which then counts twice.
    wait_for_line(&daemon, &sample("connections", 2)).await;
    assert_lines(&page(&daemon).await, &sample("up", 1));
    // A paused replica does not replace it.
    let replica = &cluster.nodes()[cluster.replicas_of(killed)[0]];
    replica.pause();
    cluster.nodes()[killed].kill();
    wait_for_line(&daemon, &sample("up", 0)).await;
    assert_lines(&page(&daemon).await, &sample("outages_total", 1));
    let mut client = daemon.connect().await;
    let line = format!("[-] store: 1 of 3 nodes are unavailable\n    {address}: the server");
    wait_until_ready(&mut client, 200, &line).await;
    replica.resume();
    eventually("the removal", async || !page(&daemon).await.contains(&address)).await;
    wait_until_ready(&mut client, 200, "[+] store ok").await;
}

#[tokio::test]
async fn the_breaker_of_a_node_has_metrics_and_a_line_of_its_own() {
    let cluster = Cluster::start(3, 0);
    let url = cluster.url();
    let yaml = format!("store: {{ url: \"{url}\" }}\npolicies: {{ api: {{ limits: [9/h] }} }}");
    let daemon = Daemon::start_on_store(Config::from_yaml(&yaml).unwrap()).await;
    let full = &cluster.nodes()[cluster.primaries()[0]];
    let address = full.address();
    let state = |state: &str, value| {
        let labels = format!("address=\"{address}\",state=\"{state}\"");
        format!("tollgate_store_node_breaker_state{{{labels}}} {value}")
    };
    wait_for_line(&daemon, &state("closed", 1)).await;
    full.command(&["CONFIG", "SET", "maxmemory", "1"]).expect_no_error("maxmemory");
    let rejected = format!("tollgate_store_node_breaker_rejected_total{{address=\"{address}\"}}");
    eventually("rejected requests", async || {
        for number in 0..32 {
            let body = format!(r#"{{"policy":"api","key":"k{number}"}}"#);
            daemon.post("/v1/check", &body).await;
        }
        let page = page(&daemon).await;
        page.contains(&rejected) && !has_line(&page, &format!("{rejected} 0"))
    })
    .await;
    let opened = format!("tollgate_store_node_breaker_opened_total{{address=\"{address}\"}} 1");
    let lines = format!("{opened}\n{}\n", state("closed", 0));
    assert_lines(&page(&daemon).await, &lines);
    let mut client = daemon.connect().await;
    let line = format!("[-] store: 1 of 3 nodes are unavailable\n    {address}: ");
    wait_until_ready(&mut client, 200, &line).await;
    full.command(&["CONFIG", "SET", "maxmemory", "0"]).expect_no_error("maxmemory");
    wait_for_line(&daemon, &state("closed", 1)).await;
    wait_until_ready(&mut client, 200, "[+] store ok").await;
}

/// Scrapes until the page has this line.
pub(crate) async fn wait_for_line(daemon: &Daemon, line: &str) {
    eventually(line, async || has_line(&page(daemon).await, line)).await;
}

#[tokio::test]
async fn decisions_over_resp_are_counted_once_for_every_command() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let commands = [
        "CL.THROTTLE k 1 1 60",
        "CL.THROTTLE k 1 1 60",
        "CL.THROTTLE k 1 1 60",
        "CL.THROTTLE k 1 1 60 3",
        "TOLLGATE.CHECK bucket k COST 2",
        "TOLLGATE.CHECK bucket k",
        "TOLLGATE.CHECK bucket k COST 3",
        "TOLLGATE.CHECK ghost k COST 2",
        "CL.THROTTLE l 5 1 60",
        "TOLLGATE.CHECK LIMIT 1/h k",
        "TOLLGATE.CHECK queue k AND log k",
        "TOLLGATE.TAKE log k",
        // These are not decisions.
        "TOLLGATE.PEEK bucket k",
        "TOLLGATE.RESET pair k",
        "TTL k",
        "DEL k",
        "PING",
        "CL.THROTTLE k x 1 60",
        "TOLLGATE.CHECK missing k",
    ];
    client.call_all(&commands).await;
    let page = page(&daemon).await;
    let lines = r#"
tollgate_decisions_total{policy="@throttle",answer="allowed",surface="resp"} 3
tollgate_decisions_total{policy="@throttle",answer="denied",surface="resp"} 1
tollgate_decisions_total{policy="@throttle",answer="never",surface="resp"} 1
tollgate_decisions_total{policy="bucket",answer="allowed",surface="resp"} 1
tollgate_decisions_total{policy="bucket",answer="denied",surface="resp"} 1
tollgate_decisions_total{policy="bucket",answer="never",surface="resp"} 1
tollgate_decisions_total{policy="ghost",answer="shadow_denied",surface="resp"} 1
tollgate_decisions_total{policy="_inline",answer="allowed",surface="resp"} 1
tollgate_decisions_total{policy="queue",answer="allowed",surface="resp"} 1
tollgate_decisions_total{policy="log",answer="allowed",surface="resp"} 2
tollgate_decision_duration_seconds_count{surface="resp"} 12
tollgate_audit_total{verb="reset"} 2
tollgate_connections{listener="resp"} 1
"#;
    assert_lines(&page, lines);
}

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: shadow, rate_limit: { unit: minute, requests_per_unit: 1 }, shadow_mode: true }
";

#[tokio::test]
async fn decisions_over_grpc_are_counted_under_the_policy_of_their_domain() {
    let daemon = envoy::start("", LIMITS).await;
    let rows = "
> domain +2 | user=a
< OK | OK 2/MINUTE 0 20s
> domain | user=a | user=b | free=a
< OVER_LIMIT | OVER_LIMIT 2/MINUTE 0 20s | OK 2/MINUTE 2 0s | OK - 0 -
> domain | user=b +3
< OVER_LIMIT | OVER_LIMIT 2/MINUTE 2 -
> domain | shadow=a +2
< OK | OK 1/MINUTE 1 0s
# A refund is not a decision.
> domain | user=a -1
< OK | OK 2/MINUTE 1 20s
> elsewhere | user=a
< OK | OK - 0 -
> domain
< InvalidArgument: descriptors is empty; send at least one
";
    envoy::check_all(&daemon, rows).await;
    let lines = r#"
tollgate_decisions_total{policy="@envoy.domain",answer="allowed",surface="envoy"} 2
tollgate_decisions_total{policy="@envoy.domain",answer="denied",surface="envoy"} 1
tollgate_decisions_total{policy="@envoy.domain",answer="never",surface="envoy"} 1
tollgate_decisions_total{policy="@envoy.domain",answer="shadow_denied",surface="envoy"} 1
tollgate_http_requests_total{listener="grpc",status="2xx"} 6
tollgate_http_requests_total{listener="grpc",status="4xx"} 1
"#;
    assert_lines(&page(&daemon).await, lines);
}

//! The daemon on a real Redis or Valkey, also while the store is unavailable.

use std::time::Duration;

use tollgate_daemon::Config;
use tollgate_testkit::{Cluster, Folder, Proxy, Server};

use crate::envoy::client as rate_limit_service;
use crate::resp::RespClient;
use crate::support::client::{Client, Response};
use crate::support::daemon::Daemon;
use crate::support::eventually;

async fn start(server: &Server, policies: &str) -> Daemon {
    Daemon::start_on(server, &format!("policies: {{ {policies} }}")).await
}

async fn check(daemon: &Daemon, policy: &str) -> Response {
    daemon.post("/v1/check", &format!(r#"{{"policy":"{policy}","key":"k"}}"#)).await
}

/// Waits until checks of a policy are decided by the store, or without it.
async fn wait_until_degraded(daemon: &Daemon, policy: &str, expected: bool) {
    let is_expected = async || is_degraded(&check(daemon, policy).await) == expected;
    eventually("a change of the store", is_expected).await;
}

fn is_degraded(response: &Response) -> bool {
    response.body.contains(r#""degraded":true"#)
}

#[tokio::test]
async fn checks_keep_their_state_on_the_server() {
    let server = Server::start();
    let daemon = start(&server, "api: { limits: [2/h] }").await;
    let rows = [
        (200, r#""remaining":1,"retry_after":null"#),
        (200, r#""remaining":0,"retry_after":null"#),
        (429, r#""remaining":0,"retry_after":1"#),
    ];
    for (status, expected) in rows {
        let response = check(&daemon, "api").await;
        for expected in [expected, r#""source":"store","degraded":false"#] {
            response.assert(status, expected, "api");
        }
        assert_eq!(response.header("retry-after").is_some(), status == 429);
    }
    for (operation, expected) in [
        ("inspect", r#""capacity":2,"used":2,"remaining":0"#),
        ("reset", r#""remaining":2"#),
        ("block", r#""changed":true"#),
        ("peek", r#""reason":"blocked""#),
        ("unblock", r#""changed":true"#),
    ] {
        let response =
            daemon.post(&format!("/v1/{operation}"), r#"{"policy":"api","key":"k"}"#).await;
        response.assert(200, expected, operation);
    }
    assert_eq!(server.keys("tollgate").len(), server.keys("").len());
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_daemons_share_a_limit_exactly() {
    let server = Server::start();
    let policies = "api: { limits: [50/d, 30/d log, 100/d from-first fixed] }";
    let daemons = [start(&server, policies).await, start(&server, policies).await];
    let mut clients = tokio::task::JoinSet::new();
    for address in daemons.iter().cycle().take(8).map(|daemon| daemon.address) {
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            let mut admitted = 0;
            for _ in 0..20 {
                let body = r#"{"policy":"api","key":"k"}"#;
                let response = client.post("/v1/check", body).await.unwrap();
                assert!(!is_degraded(&response), "{}", response.body);
                admitted += u32::from(response.status == 200);
            }
            admitted
        });
    }
    let admitted: u32 = clients.join_all().await.into_iter().sum();
    assert_eq!(admitted, 30);
}

const MIXED: &str = "closed: { limits: [10/h], on_store_error: deny },
    open: { limits: [10/h], on_store_error: allow },
    shadow: { limits: [10/h], shadow: true, on_store_error: deny },
    local: { limits: [2/h] }, listed: { limits: [10/h], deny: [k] }";

#[tokio::test]
async fn policies_decide_while_the_store_is_unavailable() {
    let server = Server::start();
    let daemon = start(&server, MIXED).await;
    assert_eq!(check(&daemon, "closed").await.status, 200);
    eventually("a share of the limits", async || {
        let page = daemon.connect().await.get("/readyz?verbose").await.unwrap();
        !page.body.contains("share of limits")
    })
    .await;
    server.kill();
    wait_until_degraded(&daemon, "open", true).await;
    for (policy, status, allowed) in
        [("closed", 503, false), ("open", 200, true), ("shadow", 200, true)]
    {
        let response = check(&daemon, policy).await;
        let granted = u32::from(allowed);
        for expected in [
            format!(r#"{{"allowed":{allowed},"reason":"store","policy":"{policy}""#),
            format!(r#""granted":{granted},"source":"fallback","degraded":true"#),
            r#""limits":[]"#.to_owned(),
        ] {
            response.assert(status, &expected, policy);
        }
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
    assert_eq!(check(&daemon, "listed").await.status, 429, "a list needs no store");
    for (status, part) in [(200, r#""remaining":1"#), (200, r#""remaining":0"#), (429, "\"limit\"")]
    {
        let response = check(&daemon, "local").await;
        response.assert(status, part, "local");
        response.assert(status, r#""source":"fallback","degraded":true"#, "local");
        assert_eq!(response.header("retry-after").is_some(), status == 429);
    }
    let body = r#"{"policy":"closed","key":"k"}"#;
    assert_eq!(daemon.post("/v1/check?status=200", body).await.status, 200);
    assert_eq!(daemon.post("/v1/peek", body).await.status, 200);
    assert_eq!(daemon.post("/v1/take", body).await.status, 503);
    let batch = r#"{"checks":[{"policy":"open","key":"k"},{"policy":"closed","key":"k"}]}"#;
    let response = daemon.post("/v1/check", batch).await;
    assert_eq!(response.status, 503);
    assert!(response.body.starts_with(r#"{"allowed":false,"retry_after":null,"never":false"#));
    for operation in ["reset", "block", "unblock", "penalize", "refund", "inspect"] {
        let response = daemon.post(&format!("/v1/{operation}"), body).await;
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
        let kind = r#""type":"/problems/store-unavailable""#;
        for part in [kind, "check its address and that it is running"] {
            response.assert(503, part, operation);
        }
    }
    // Invalid requests are rejected as usual.
    let invalid = r#"{"policy":"closed","key":"k","cost":0}"#;
    assert_eq!(daemon.post("/v1/take", invalid).await.status, 400);
    assert_eq!(daemon.connect().await.get("/readyz").await.unwrap().status, 200);
    server.restart();
    wait_until_degraded(&daemon, "closed", false).await;
    assert_eq!(check(&daemon, "closed").await.status, 200);
}

#[tokio::test]
async fn the_daemon_starts_while_the_store_is_unavailable() {
    let server = Server::start();
    server.kill();
    let daemon = start(&server, MIXED).await;
    assert_eq!(check(&daemon, "closed").await.status, 503);
    assert_eq!(check(&daemon, "open").await.status, 200);
    assert_eq!(daemon.connect().await.get("/readyz").await.unwrap().status, 200);
    server.restart();
    wait_until_degraded(&daemon, "closed", false).await;
}

#[tokio::test]
async fn a_silent_store_does_not_delay_responses_past_the_deadline() {
    let server = Server::start();
    let store = format!("store: {{ url: \"{}\", deadline: 15ms }}", server.url());
    let config = Config::from_yaml(&format!("{store}\npolicies: {{ {MIXED} }}")).unwrap();
    let daemon = Daemon::start_on_store(config).await;
    server.pause();
    let started = tokio::time::Instant::now();
    assert_eq!(check(&daemon, "closed").await.status, 503);
    assert_eq!(check(&daemon, "open").await.status, 200);
    // Two deadlines, with a margin for a busy machine, but less than twice the limit of one call.
    assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
    server.resume();
    wait_until_degraded(&daemon, "closed", false).await;
}

#[tokio::test]
async fn the_password_may_be_in_a_file() {
    let server = Server::with(|config| config.password("sesame"));
    let file = server.folder().join("password");
    std::fs::write(&file, "sesame\n").unwrap();
    let yaml = format!(
        "store: {{ url: \"redis://{}\", deadline: 5s, password_file: {} }}
policies: {{ api: {{ limits: [1/h] }} }}",
        server.address(),
        file.display()
    );
    let daemon = Daemon::start_on_store(Config::from_yaml(&yaml).unwrap()).await;
    check(&daemon, "api").await.assert(200, r#""degraded":false"#, "api");
    let config = Config::from_yaml(&yaml.replace("password }", "nowhere }")).unwrap();
    let error = config.store.open("tollgate").await.unwrap_err().to_string();
    assert!(error.starts_with("store.password_file: "), "{error}");
    assert!(error.contains("cannot be read"), "{error}");
}

const ONE_PER_DAY: &str = "
domain: domain
descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]
";

#[tokio::test]
async fn of_a_batch_only_the_checks_of_a_slow_node_are_decided_without_the_store() {
    let cluster = Cluster::start(3, 0);
    let slow = &cluster.nodes()[0];
    let proxy = Proxy::before(slow);
    let folder = Folder::create();
    let rules = folder.write("rules.yaml", ONE_PER_DAY);
    let yaml = format!(
        "store: {{ url: \"{}\", deadline: 1s, address_map: {{ \"{}\": \"{}\" }} }}
policies: {{ api: {{ limits: [1/d], on_store_error: allow }} }}
envoy: {{ config: [\"{}\"], charging: reference, on_store_error: allow }}",
        cluster.url(),
        slow.address(),
        proxy.address(),
        rules.display()
    );
    let daemon = Daemon::start_on_store(Config::from_yaml(&yaml).unwrap()).await;
    let commands: Vec<String> = (0..32).map(|n| format!("TOLLGATE.CHECK api key-{n}")).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let request: String = (0..32).map(|n| format!(" | user=key-{n}")).collect();
    let request = format!("domain{request}");

    let mut resp = RespClient::connect(&daemon).await;
    resp.call("HELLO 3").await;
    let mut grpc = rate_limit_service::connect(&daemon).await;
    for reply in resp.call_all(&commands).await {
        assert!(reply.contains("$8 degraded #f"), "{reply}");
    }
    assert!(!rate_limit_service::call(&mut grpc, &request).await.contains("OVER_LIMIT"));

    proxy.delay(Duration::from_secs(3));
    let names = slow.keys("tollgate");
    let is_slow = |policy: &str, key: &str| {
        names.iter().any(|name| name.contains(policy) && name.ends_with(key))
    };
    let mut slow_keys = 0;
    for (n, reply) in resp.call_all(&commands).await.iter().enumerate() {
        let is_slow = is_slow(":api:", &format!(":key-{n}"));
        slow_keys += usize::from(is_slow);
        let expected = if is_slow { "$8 degraded #t" } else { "$8 degraded #f" };
        assert!(reply.contains(expected), "key-{n}: {reply}");
        let allowed = if is_slow { "$7 allowed #t" } else { "$7 allowed #f" };
        assert!(reply.contains(allowed), "key-{n}: {reply}");
    }
    assert!((1..32).contains(&slow_keys), "{names:?}");
    let response = rate_limit_service::call(&mut grpc, &request).await;
    for (n, status) in response.split(" | ").skip(1).enumerate() {
        let is_slow = is_slow("domain", &format!("key-{n}"));
        assert_eq!(status.starts_with("OK"), is_slow, "key-{n}: {status}; {names:?}");
    }
}

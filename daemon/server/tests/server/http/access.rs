//! Tokens: scopes, policies and token files.

use std::fs;

use tokio::net::TcpListener;
use tokio::time::Instant;
use tollgate::MemoryLimiter;
use tollgate_daemon::{Config, Listeners, TokenConfig, run};
use tollgate_engine::WRONG_TOKEN_DELAY;
use tollgate_testkit::{Folder, Server};

use crate::resp::RespClient;
use crate::support::client::encode_request;
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::{ID, eventually, unreachable_store};

/// Parses a token of the configuration.
pub(crate) fn token(name: &str, scope: &str, policies: &str) -> TokenConfig {
    parse(&format!("token: the-secret-of-{name}"), name, scope, policies)
}

fn parse(secret: &str, name: &str, scope: &str, policies: &str) -> TokenConfig {
    let yaml = format!("name: {name}, {secret}, scopes: [{scope}], policies: [{policies}]");
    Config::from_yaml(&format!("tokens: [{{ {yaml} }}]")).unwrap().tokens.remove(0)
}

/// Starts a daemon with a token for each scope, and `narrow` for some policies only.
pub(crate) async fn start() -> Daemon {
    Daemon::start_with_options(|config| {
        config.tokens = vec![
            token("check", "check", "'*'"),
            token("read", "read", "'*'"),
            token("operate", "operate", "'*'"),
            token("admin", "admin", "'*'"),
            token("narrow", "admin", "bucket, lo*"),
        ];
    })
    .await
}

pub(crate) fn bearer(name: &str) -> String {
    format!("authorization: Bearer the-secret-of-{name}")
}

#[tokio::test]
async fn tokens_allow_the_operations_of_their_scopes() {
    let daemon = start().await;
    let bucket = r#"{"policy":"bucket","key":"a"}"#;
    let lease = &format!(r#"{{"policy":"slots","key":"a","lease_id":"{ID}"}}"#);
    let reservation = &lease.replace("lease_id", "reservation_id").replace("slots", "queue");
    let inline = r#"{"limit":"1/s","key":"a"}"#;
    for (operation, body, tokens) in [
        ("check", bucket, "check admin"),
        ("peek", bucket, "check read admin"),
        ("take", bucket, "check admin"),
        ("reserve", r#"{"policy":"queue","key":"a"}"#, "check admin"),
        ("cancel", reservation, "check admin"),
        ("settle", r#"{"policy":"bucket","key":"a","cost":1,"request_id":"r"}"#, "check admin"),
        ("acquire", lease, "check admin"),
        ("renew", lease, "check admin"),
        ("release", lease, "check admin"),
        ("inspect", bucket, "read admin"),
        ("refund", bucket, "operate admin"),
        ("penalize", bucket, "operate admin"),
        ("reset", bucket, "operate admin"),
        ("block", bucket, "operate admin"),
        ("unblock", bucket, "operate admin"),
        // Inline limits need the scope of the operation and `operate`.
        ("check", inline, "admin"),
        ("inspect", inline, "admin"),
        ("reset", inline, "operate admin"),
    ] {
        for name in ["check", "read", "operate", "admin"] {
            let response = daemon.post_with(&format!("/v1/{operation}"), &bearer(name), body).await;
            let is_allowed = tokens.split(' ').any(|token| token == name);
            if is_allowed {
                assert_ne!(response.status, 403, "{operation} {name}: {}", response.body);
                continue;
            }
            assert!(response.body.starts_with(r#"{"type":"/problems/token-lacks""#));
            for part in ["needs the scope ", &format!(r#"\"{name}\""#)] {
                response.assert(403, part, operation);
            }
        }
    }
}

#[tokio::test]
async fn tokens_are_restricted_to_their_policies_in_every_check() {
    let daemon = start().await;
    for (body, status, field) in [
        (r#"{"policy":"bucket","key":"a"}"#, 200, ""),
        (r#"{"policy":"log","key":"a"}"#, 200, ""),
        (r#"{"policy":"queue","key":"a"}"#, 403, r#""field":"policy""#),
        // Whether the policy exists is not revealed.
        (r#"{"policy":"nothing","key":"a"}"#, 403, r#""field":"policy""#),
        (r#"{"policy":"longer","key":"a"}"#, 404, r#""field":"policy""#),
        (r#"{"limit":"1/s","key":"a"}"#, 403, r#""field":"limit""#),
        (
            r#"{"checks":[{"policy":"bucket","key":"a"},{"policy":"queue","key":"a"}]}"#,
            403,
            r#""field":"checks[1].policy""#,
        ),
    ] {
        let response = daemon.post_with("/v1/check", &bearer("narrow"), body).await;
        response.assert(status, field, body);
    }
    let peek = r#"{"policy":"bucket","key":"a"}"#;
    let peek = daemon.post_with("/v1/peek", &bearer("narrow"), peek).await.body;
    assert!(peek.contains(r#""remaining":1"#), "a rejected request charges nothing: {peek}");
}

#[tokio::test]
async fn request_ids_are_separate_for_each_token_and_policy() {
    let server = Server::start();
    let store = format!("store: {{ url: \"{}\", deadline: 5s }}\n{POLICIES}", server.url());
    for yaml in [POLICIES, &store] {
        let mut config = Config::from_yaml(yaml).unwrap();
        config.tokens = vec![token("one", "check", "'*'"), token("two", "check", "'*'")];
        let daemon = if config.store.url.is_memory() {
            Daemon::start_with_config(config).await
        } else {
            Daemon::start_on_store(config).await
        };
        for (name, policy, remaining, replayed) in [
            ("one", "log", 1, false),
            ("two", "log", 0, false),
            ("one", "log", 1, true),
            ("two", "log", 0, true),
            ("one", "pair", 1, false),
            ("one", "pair", 1, true),
        ] {
            let body = format!(r#"{{"policy":"{policy}","key":"k","request_id":"same"}}"#);
            let response = daemon.post_with("/v1/check", &bearer(name), &body).await;
            let row = format!("{name} {policy}");
            response.assert(200, &format!(r#""remaining":{remaining},"#), &row);
            response.assert(200, &format!(r#""replayed":{replayed}"#), &row);
        }
        let body = r#"{"policy":"pair","key":"k","cost":0,"request_id":"same"}"#;
        for (name, status) in [("two", 404), ("one", 200)] {
            let response = daemon.post_with("/v1/settle", &bearer(name), body).await;
            response.assert(status, "", name);
        }
    }
}

#[tokio::test]
async fn ids_of_leases_and_reservations_are_shown_to_operators_only() {
    let mut config = Config::from_yaml(POLICIES).unwrap();
    let open = Daemon::start_unchanged(config.clone()).await;
    config.tokens = vec![
        token("check", "check", "'*'"),
        token("read", "read", "'*'"),
        token("ops", "read, operate", "'*'"),
    ];
    let daemon = Daemon::start_with_config(config).await;
    for (policy, operation, field) in
        [("slots", "acquire", "lease_id"), ("queue", "reserve", "reservation_id")]
    {
        let body = format!(r#"{{"policy":"{policy}","key":"k","{field}":"{ID}"}}"#);
        let key = format!(r#"{{"policy":"{policy}","key":"k"}}"#);
        // The second reservation has not acted yet.
        let other = key.clone();
        for body in [&other, &body] {
            for (daemon, header) in [(&open, String::new()), (&daemon, bearer("check"))] {
                let path = format!("/v1/{operation}");
                daemon.post_with(&path, &header, body).await.assert(200, "", operation);
            }
        }
        for (daemon, header, is_shown) in [
            (&open, String::new(), false),
            (&daemon, bearer("read"), false),
            (&daemon, bearer("ops"), true),
        ] {
            let inspection = daemon.post_with("/v1/inspect", &header, &key).await;
            inspection.assert(200, r#""cost":1"#, operation);
            assert_eq!(inspection.body.contains(ID), is_shown, "{}", inspection.body);
            let command = format!("TOLLGATE.INSPECT {policy} k");
            let mut client = RespClient::connect(daemon).await;
            if let Some(secret) = header.strip_prefix("authorization: Bearer ") {
                assert_eq!(client.call(&format!("AUTH {secret}")).await, "+OK");
            }
            let reply = client.call(&command).await;
            assert!(reply.contains("$4 cost :1"), "{reply}");
            assert_eq!(reply.contains(ID), is_shown, "{reply}");
        }
    }
}

#[tokio::test]
async fn the_address_of_the_store_is_shown_to_operators_only() {
    let yaml = format!("store: {{ url: \"{}\" }}", unreachable_store());
    let mut config = Config::from_yaml(&yaml).unwrap();
    config.tokens = vec![token("check", "check", "'*'"), token("ops", "operate", "'*'")];
    let daemon = Daemon::start_on_store(config).await;
    for (header, is_shown) in
        [(String::new(), false), (bearer("check"), false), (bearer("ops"), true)]
    {
        let mut page = String::new();
        eventually("the outage", async || {
            let mut client = daemon.connect().await;
            let response = client.request_with("GET", "/readyz?verbose", &header, "").await;
            page = response.unwrap().body;
            page.contains("[-] store: ") && !page.contains("not connected yet")
        })
        .await;
        assert_eq!(page.contains("127.0.0.1"), is_shown, "{page}");
        assert!(is_shown || page.contains("[-] store: failed; operators see the reason"), "{page}");
    }
}

#[tokio::test]
async fn without_a_valid_token_only_the_probes_answer() {
    let daemon = start().await;
    let body = r#"{"policy":"bucket","key":"a"}"#;
    for header in [
        "",
        "authorization: Bearer unknown-secret",
        "authorization: Basic c2VjcmV0",
        "authorization: the-secret-of-admin",
        "tollgate-token: the-secret-of-admin",
        "authorization: Bearer the-secret-of-admin\r\nauthorization: Bearer the-secret-of-check",
    ] {
        for operation in ["check", "inspect", "reset"] {
            let response = daemon.post_with(&format!("/v1/{operation}"), header, body).await;
            response.assert(401, "", header);
            assert_eq!(response.header("www-authenticate"), Some(r#"Bearer realm="tollgate""#));
            assert_eq!(response.header("content-type"), Some("application/problem+json"));
            assert!(!response.body.contains("secret-of"), "{}", response.body);
        }
    }
    let mut client = daemon.connect().await;
    assert_eq!(client.get("/v1/peek?policy=bucket&key=a").await.unwrap().status, 401);
    for path in ["/livez", "/readyz"] {
        assert_eq!(client.get(path).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn wrong_tokens_are_answered_after_a_delay_in_parallel() {
    const CLIENTS: usize = 50;
    let daemon = start().await;
    let body = r#"{"policy":"bucket","key":"a"}"#;
    for (path, header) in [
        ("/v1/check", "authorization: Bearer unknown-secret"),
        ("/v1/forward-auth/traefik", "tollgate-token: unknown-secret"),
        ("/openapi.json", "authorization: Bearer unknown-secret"),
        ("/json", "authorization: Bearer unknown-secret"),
        ("/readyz?verbose", "authorization: Bearer unknown-secret"),
    ] {
        let is_page = matches!(path, "/openapi.json" | "/readyz?verbose");
        let method = if is_page { "GET" } else { "POST" };
        let mut client = daemon.connect().await;
        let start = Instant::now();
        let response = client.request_with(method, path, header, body).await.unwrap();
        assert!(start.elapsed() >= WRONG_TOKEN_DELAY, "{path}: {:?}", start.elapsed());
        assert_eq!(response.status, if path.starts_with("/readyz") { 200 } else { 401 }, "{path}");
    }
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(daemon.connect().await);
    }
    let header = "authorization: Bearer unknown-secret";
    let start = Instant::now();
    for client in &mut clients {
        client.send(&encode_request("POST", "/v1/check", header, body)).await.unwrap();
    }
    for client in &mut clients {
        client.read_response().await.unwrap().assert(401, "invalid token", "");
    }
    // One after the other, they would take ten seconds.
    let elapsed = start.elapsed();
    assert!(elapsed >= WRONG_TOKEN_DELAY && elapsed < WRONG_TOKEN_DELAY * 25, "{elapsed:?}");
}

#[tokio::test]
async fn token_files_are_reloaded_when_they_change() {
    let directory = Folder::create();
    let file = directory.write("token", "the-first-token-of-all\n");
    let tokens = "tokens: [{ name: it, token_file: token, scopes: [check] }]";
    let yaml = format!("{tokens}\npolicies: {{ bucket: {{ limits: [2/s] }} }}");
    let daemon = Daemon::start_from_file(&directory.write("tollgate.yaml", &yaml)).await;
    let body = r#"{"policy":"bucket","key":"a","cost":0}"#;
    let status = async |secret: &str| {
        daemon.post_with("/v1/check", &format!("authorization: Bearer {secret}"), body).await.status
    };
    assert_eq!(
        (status("the-first-token-of-all").await, status("the-second-token-of-all").await),
        (200, 401)
    );
    // An empty file and a short token are rejected, and the previous token stays valid.
    for text in ["", "fifteen-bytes-1\n"] {
        let reads = daemon.reads();
        fs::write(&file, text).unwrap();
        eventually("a reload", async || daemon.reads() > reads).await;
        assert_eq!(status("the-first-token-of-all").await, 200);
        assert_eq!(status(text.trim_end()).await, 401);
    }
    fs::write(&file, "the-second-token-of-all\n").unwrap();
    eventually("the new token", async || status("the-second-token-of-all").await == 200).await;
    assert_eq!(status("the-first-token-of-all").await, 401);
}

#[tokio::test]
async fn a_token_is_configured_as_its_digest() {
    let mut config = Config::from_yaml(POLICIES).unwrap();
    // `printf %s the-secret-of-hashed | sha256sum`, in either case of letters.
    let digest = "5218DD6766D97B4A56406548C6F70AFF84f20a65c30d9e1b9be601a49eb56ff8";
    let hashed = parse(&format!("token_sha256: {digest}"), "hashed", "check", "'*'");
    config.tokens = vec![hashed];
    let daemon = Daemon::start_with_config(config).await;
    let body = r#"{"policy":"bucket","key":"a"}"#;
    for (secret, status) in
        [("the-secret-of-hashed", 200), (digest, 401), ("the-secret-of-hashe", 401)]
    {
        let header = format!("authorization: Bearer {secret}");
        daemon.post_with("/v1/check", &header, body).await.assert(status, "", secret);
    }
    let mut client = RespClient::connect(&daemon).await;
    assert_eq!(client.call("AUTH hashed the-secret-of-hashed").await, "+OK");
    assert_eq!(client.call("PING").await, "+PONG");
}

#[tokio::test]
async fn an_unreadable_token_file_prevents_the_start() {
    let mut config = Config::from_yaml("").unwrap();
    config.tokens = vec![parse("token_file: /tollgate/no/such/token", "it", "check", "'*'")];
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limiter = MemoryLimiter::new();
    let listeners = Listeners { http: Some(http.into()), ..Listeners::default() };
    let result = run(config, listeners, limiter, None, std::future::pending()).await;
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("token \"it\": ") && error.contains("cannot be read"), "{error}");
}

#[tokio::test]
async fn gateways_authenticate_with_the_tollgate_token_header() {
    let rules = "rules: [{ match: { path: '/**' }, policy: bucket, key: '{header.x-user}' }]";
    let mut config = Config::from_yaml(&format!("{POLICIES}{rules}")).unwrap();
    config.tokens = vec![
        token("gateway", "check", "bucket"),
        token("other", "check", "log"),
        token("ops", "operate", "'*'"),
    ];
    let daemon = Daemon::start_with_config(config).await;
    let client = "authorization: Bearer of-the-client\r\nx-user: a";
    for (header, status) in [
        ("tollgate-token: the-secret-of-gateway", 200),
        ("", 401),
        ("tollgate-token: unknown-secret", 401),
        ("authorization: Bearer the-secret-of-gateway", 401),
        ("tollgate-token: the-secret-of-ops", 403),
        ("tollgate-token: the-secret-of-other", 403),
    ] {
        let forwarded = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-host: h";
        let headers = [client, forwarded, header].join("\r\n");
        let headers = headers.trim_end();
        let response = daemon.post_with("/v1/forward-auth/traefik", headers, "").await;
        response.assert(status, "", header);
    }
}

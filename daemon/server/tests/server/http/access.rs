//! Tokens: scopes, policies and token files.

use std::fs;

use tokio::net::TcpListener;
use tollgate::MemoryLimiter;
use tollgate_server::{Config, Listeners, TokenConfig, run};
use tollgate_testkit::Folder;

use crate::support::daemon::{Daemon, POLICIES};
use crate::support::{ID, eventually};

/// Parses a token of the configuration.
pub(crate) fn token(name: &str, scope: &str, policies: &str) -> TokenConfig {
    parse(&format!("token: secret-of-{name}"), name, scope, policies)
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
    format!("authorization: Bearer secret-of-{name}")
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
async fn without_a_valid_token_only_the_probes_answer() {
    let daemon = start().await;
    let body = r#"{"policy":"bucket","key":"a"}"#;
    for header in [
        "",
        "authorization: Bearer unknown-secret",
        "authorization: Basic c2VjcmV0",
        "authorization: secret-of-admin",
        "tollgate-token: secret-of-admin",
        "authorization: Bearer secret-of-admin\r\nauthorization: Bearer secret-of-check",
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
async fn token_files_are_reloaded_when_they_change() {
    let directory = Folder::create();
    let file = directory.write("token", "first\n");
    let tokens = "tokens: [{ name: it, token_file: token, scopes: [check] }]";
    let yaml = format!("{tokens}\npolicies: {{ bucket: {{ limits: [2/s] }} }}");
    let daemon = Daemon::start_from_file(&directory.write("tollgate.yaml", &yaml)).await;
    let body = r#"{"policy":"bucket","key":"a","cost":0}"#;
    let status = async |secret: &str| {
        daemon.post_with("/v1/check", &format!("authorization: Bearer {secret}"), body).await.status
    };
    assert_eq!((status("first").await, status("second").await), (200, 401));
    // An empty file is rejected, and the previous token stays valid.
    let reads = daemon.reads();
    fs::write(&file, "").unwrap();
    eventually("a reload", async || daemon.reads() > reads).await;
    assert_eq!(status("first").await, 200);
    fs::write(&file, "second\n").unwrap();
    eventually("the new token", async || status("second").await == 200).await;
    assert_eq!(status("first").await, 401);
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
        ("tollgate-token: secret-of-gateway", 200),
        ("", 401),
        ("tollgate-token: unknown-secret", 401),
        ("authorization: Bearer secret-of-gateway", 401),
        ("tollgate-token: secret-of-ops", 403),
        ("tollgate-token: secret-of-other", 403),
    ] {
        let forwarded = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-host: h";
        let headers = [client, forwarded, header].join("\r\n");
        let headers = headers.trim_end();
        let response = daemon.post_with("/v1/forward-auth/traefik", headers, "").await;
        response.assert(status, "", header);
    }
}

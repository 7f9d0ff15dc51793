//! Tokens: who may do what.

use std::time::Duration;
use std::{env, fs, process};

use tokio::net::TcpListener;
use tollgate::MemoryLimiter;
use tollgate_server::{Config, Listeners, TokenConfig, run};

use crate::daemon::{Daemon, POLICIES};

/// A token as the configuration reads it.
pub(crate) fn token(name: &str, scope: &str, policies: &str) -> TokenConfig {
    read(&format!("token: secret-of-{name}"), name, scope, policies)
}

fn read(secret: &str, name: &str, scope: &str, policies: &str) -> TokenConfig {
    let yaml = format!("name: {name}, {secret}, scopes: [{scope}], policies: [{policies}]");
    Config::from_yaml(&format!("tokens: [{{ {yaml} }}]")).unwrap().tokens.remove(0)
}

/// A daemon with a token of each scope, and one that is for a policy only.
pub(crate) async fn start() -> Daemon {
    Daemon::start_changed(|x| {
        x.tokens = vec![
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

const ID: &str = r#""lease_id":"0000000000000000000000000000000a""#;

#[tokio::test]
async fn a_token_may_what_its_scopes_say() {
    let daemon = start().await;
    let bucket = r#"{"policy":"bucket","key":"a"}"#;
    let lease = &format!(r#"{{"policy":"slots","key":"a",{ID}}}"#);
    let reservation = &lease.replace("lease_id", "reservation_id").replace("slots", "queue");
    let inline = r#"{"limit":"1/s","key":"a"}"#;
    for (verb, body, tokens) in [
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
        // Limits in place of a policy need the verb's scope and an operator's.
        ("check", inline, "admin"),
        ("inspect", inline, "admin"),
        ("reset", inline, "operate admin"),
    ] {
        for name in ["check", "read", "operate", "admin"] {
            let answer = daemon.post_with(&format!("/v1/{verb}"), &bearer(name), body).await;
            let may = tokens.split(' ').any(|part| part == name);
            assert_eq!(answer.status != 403, may, "{verb} {name}: {}", answer.body);
            if !may {
                assert!(answer.body.starts_with(r#"{"type":"/problems/token-lacks""#));
                assert!(answer.body.contains("needs the scope "), "{}", answer.body);
                assert!(answer.body.contains(&format!(r#"\"{name}\""#)), "{}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn a_token_is_for_its_policies_in_every_check() {
    let daemon = start().await;
    for (body, status, field) in [
        (r#"{"policy":"bucket","key":"a"}"#, 200, ""),
        (r#"{"policy":"log","key":"a"}"#, 200, ""),
        (r#"{"policy":"queue","key":"a"}"#, 403, r#""field":"policy""#),
        // Whether there is such a policy is not for everybody to know.
        (r#"{"policy":"nothing","key":"a"}"#, 403, r#""field":"policy""#),
        (r#"{"policy":"longer","key":"a"}"#, 404, r#""field":"policy""#),
        (r#"{"limit":"1/s","key":"a"}"#, 403, r#""field":"limit""#),
        (
            r#"{"checks":[{"policy":"bucket","key":"a"},{"policy":"queue","key":"a"}]}"#,
            403,
            r#""field":"checks[1].policy""#,
        ),
    ] {
        let answer = daemon.post_with("/v1/check", &bearer("narrow"), body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(answer.body.contains(field), "{}", answer.body);
    }
    let peek = r#"{"policy":"bucket","key":"a"}"#;
    let peek = daemon.post_with("/v1/peek", &bearer("narrow"), peek).await.body;
    assert!(peek.contains(r#""remaining":1"#), "a refused request charges nothing: {peek}");
}

#[tokio::test]
async fn without_a_known_token_only_the_probes_answer() {
    let daemon = start().await;
    let body = r#"{"policy":"bucket","key":"a"}"#;
    for header in [
        "",
        "authorization: Bearer secret-of-nobody",
        "authorization: Basic c2VjcmV0",
        "authorization: secret-of-admin",
        "tollgate-token: secret-of-admin",
        "authorization: Bearer secret-of-admin\r\nauthorization: Bearer secret-of-check",
    ] {
        for verb in ["check", "inspect", "reset"] {
            let answer = daemon.post_with(&format!("/v1/{verb}"), header, body).await;
            assert_eq!(answer.status, 401, "{header}: {}", answer.body);
            assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="tollgate""#));
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            assert!(!answer.body.contains("secret-of"), "{}", answer.body);
        }
    }
    let mut client = daemon.connect().await;
    assert_eq!(client.get("/v1/peek?policy=bucket&key=a").await.unwrap().status, 401);
    for path in ["/livez", "/readyz"] {
        assert_eq!(client.get(path).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_token_in_a_file_is_read_at_the_start_and_when_it_changes() {
    let folder = env::temp_dir().join(format!("tollgate-access-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (file, config) = (folder.join("token"), folder.join("tollgate.yaml"));
    fs::write(&file, "first\n").unwrap();
    let tokens = "tokens: [{ name: it, token_file: token, scopes: [check] }]";
    fs::write(&config, format!("{tokens}\npolicies: {{ bucket: {{ limits: [2/s] }} }}")).unwrap();
    let daemon = Daemon::start_from(&config).await;
    let body = r#"{"policy":"bucket","key":"a","cost":0}"#;
    let status = async |secret: &str| {
        daemon.post_with("/v1/check", &format!("authorization: Bearer {secret}"), body).await.status
    };
    assert_eq!((status("first").await, status("second").await), (200, 401));
    // What cannot be used leaves the old one: it is read, and refused.
    let reads = daemon.reads();
    fs::write(&file, "").unwrap();
    until(async || daemon.reads() > reads).await;
    assert_eq!(status("first").await, 200);
    fs::write(&file, "second\n").unwrap();
    until(async || status("second").await == 200).await;
    assert_eq!(status("first").await, 401);
    fs::remove_dir_all(&folder).unwrap();
}

/// Waits until it is so.
async fn until(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}

#[tokio::test]
async fn a_token_that_cannot_be_used_ends_the_start() {
    let mut config = Config::from_yaml("").unwrap();
    config.tokens = vec![read("token_file: /tollgate/no/such/token", "it", "check", "'*'")];
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limiter = MemoryLimiter::new();
    let listeners = Listeners { http: Some(http.into()), ..Listeners::default() };
    let ended = run(config, listeners, limiter, None, std::future::pending()).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.starts_with("token \"it\": ") && error.contains("cannot be read"), "{error}");
}

#[tokio::test]
async fn a_gateway_has_a_header_of_its_own() {
    let rules = "rules: [{ match: { path: '/**' }, policy: bucket, key: '{header.x-user}' }]";
    let mut config = Config::from_yaml(&format!("{POLICIES}{rules}")).unwrap();
    config.tokens = vec![
        token("gateway", "check", "bucket"),
        token("other", "check", "log"),
        token("ops", "operate", "'*'"),
    ];
    let daemon = Daemon::start_of(config).await;
    let client = "authorization: Bearer of-the-client\r\nx-user: a";
    for (header, status) in [
        ("tollgate-token: secret-of-gateway", 200),
        ("", 401),
        ("tollgate-token: secret-of-nobody", 401),
        ("authorization: Bearer secret-of-gateway", 401),
        ("tollgate-token: secret-of-ops", 403),
        ("tollgate-token: secret-of-other", 403),
    ] {
        let told = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-host: h";
        let headers = [client, told, header].join("\r\n");
        let headers = headers.trim_end();
        let asked = daemon.post_with("/v1/forward-auth/traefik", headers, "").await;
        assert_eq!(asked.status, status, "{header}: {}", asked.body);
    }
}

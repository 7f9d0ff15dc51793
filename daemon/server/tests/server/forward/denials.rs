//! What passes, and what is said of what does not.

use tollgate::Micros;
use tollgate_server::rules::{Jwt, OnNoRule};

use super::bodies::{DENIED, body};
use super::*;

#[tokio::test]
async fn a_denial_tells_the_policy_and_the_wait_and_never_the_key() {
    for dialect in DIALECTS {
        let daemon = Daemon::start_of(config()).await;
        let told = Told { target: "/login", ..USUAL };
        let request = told.request(dialect, "", &[], [&[], &[]]);
        let passed = send(&daemon, &request).await;
        assert_eq!((passed.status, &*passed.body), (200, ""), "{dialect}");
        assert_eq!(passed.header("cache-control"), Some("no-store"));
        daemon.clock.advance(Micros::new(59_400_000));
        let denied = send(&daemon, &request).await;
        assert_eq!(denied.status, 429, "{dialect}");
        assert_eq!(denied.header("retry-after"), Some("1"));
        assert_eq!(denied.header("cache-control"), Some("no-store"));
        assert_eq!(denied.header("content-type"), Some("application/problem+json"));
        let body = r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"The quota is exceeded","status":429,"detail":"try again in 0.6 s","violated-policies":["login"],"retry_after":0.6}"#;
        assert_eq!(denied.body, body, "{dialect}");
        daemon.clock.advance(Micros::new(600_000));
        assert_eq!(send(&daemon, &request).await.status, 200, "{dialect}");
    }
}

#[tokio::test]
async fn a_gateway_that_knows_fewer_statuses_says_which() {
    for dialect in ["nginx", "caddy", "traefik", "haproxy"] {
        for (query, status) in [
            ("", 429),
            ("/", 429),
            ("/anything", 429),
            ("?deny=403", 403),
            ("?deny=401", 401),
            ("?deny=429", 429),
        ] {
            let daemon = Daemon::start_of(config()).await;
            let told = Told { target: "/login", ..USUAL };
            let request = told.request(dialect, query, &[], [&[], &[]]);
            assert_eq!(send(&daemon, &request).await.status, 200, "{dialect} {query}");
            let denied = send(&daemon, &request).await;
            assert_eq!(denied.status, status, "{dialect} {query}");
            assert_eq!(denied.header("retry-after"), Some("60"), "{dialect} {query}");
            assert!(denied.body.contains(&format!(r#""status":{status},"#)), "{}", denied.body);
        }
    }
}

#[tokio::test]
async fn every_method_is_answered_and_no_body_is_looked_at() {
    for (dialect, method, more) in [
        ("nginx", "HEAD", ""),
        ("caddy", "OPTIONS", ""),
        ("haproxy", "HEAD", ""),
        ("traefik", "POST", "{not json"),
        ("envoy", "HEAD", ""),
        ("envoy", "PUT", "{not json"),
        ("envoy", "PURGE", ""),
    ] {
        let daemon = Daemon::start_of(config()).await;
        let told = Told { target: "/login", ..USUAL };
        let length = format!("Content-Length: {}", more.len());
        let request = told.request(dialect, "", &[], [&["Connection: close"], &[&length]]);
        let request = format!("{method}{}{more}", request.strip_prefix("GET").unwrap());
        for status in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 429 Too Many Requests\r\n"] {
            let mut client = daemon.connect().await;
            client.send(&request).await.unwrap();
            let answer = client.closed().await;
            assert!(answer.starts_with(status), "{dialect} {method}: {answer}");
            let has_body = answer.split_once("\r\n\r\n").is_some_and(|(_, x)| !x.is_empty());
            assert_eq!(has_body, status.contains("429") && method != "HEAD", "{dialect} {method}");
        }
    }
}

/// A client sends these at will: no decision would let it pass where the gateway fails open.
#[tokio::test]
async fn what_a_client_makes_ambiguous_is_denied() {
    let mut config = config();
    config.limits.key_bytes = 32;
    for dialect in DIALECTS {
        let daemon = Daemon::start_of(config.clone()).await;
        let long = format!("X-Api-Key: {}", "k".repeat(33));
        let several = "the request has several values for header.x-api-key; send one";
        for (target, more, status, said) in [
            ("/key", &["X-Api-Key: a", "X-Api-Key: a"][..], 200, ""),
            ("/key", &["X-Api-Key: a", "X-Api-Key: b"], 429, several),
            ("/key-or-ip", &["X-Api-Key: a", "X-Api-Key: b"], 429, several),
            ("/skip", &["X-Api-Key: a", "X-Api-Key: b"], 429, several),
            (
                "/key",
                &[&long],
                429,
                "{header.x-api-key} makes a key of more than 32 bytes; send a shorter value",
            ),
        ] {
            let told = Told { target, ..USUAL };
            let answer = send(&daemon, &told.request(dialect, "", &[], [more, &[]])).await;
            assert_eq!(answer.status, status, "{dialect} {target}: {}", answer.body);
            assert!(answer.body.contains(said), "{dialect}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn all_checks_of_a_rule_are_decided_together() {
    let daemon = Daemon::start_of(config()).await;
    let told = Told { target: "/two", ..USUAL };
    let request = told.request("nginx", "", &[], [&["X-Api-Key: k"], &[]]);
    for (status, charged) in [(200, "1"), (429, "1"), (429, "1")] {
        let answer = send(&daemon, &request).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        // What the second check denies is not charged to the first.
        assert_eq!(used(&daemon, "per-ip", "203.0.113.7").await, charged);
        if status == 429 {
            assert!(answer.body.contains(r#""violated-policies":["login"]"#), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn what_has_no_key_or_no_rule_is_as_the_rules_say() {
    for (target, on_no_rule, status) in [
        ("/skip", OnNoRule::Deny, 200),
        ("/deny", OnNoRule::Pass, 429),
        ("/key", OnNoRule::Pass, 429),
        ("/error", OnNoRule::Deny, 500),
        ("/nowhere", OnNoRule::Pass, 200),
        ("/nowhere", OnNoRule::Deny, 429),
        ("/nowhere%2Felse", OnNoRule::Deny, 429),
    ] {
        let mut config = config();
        config.rules.on_no_rule = on_no_rule;
        // Nobody's address is asked for, so nobody needs to be trusted.
        config.trusted_proxies = Networks::default();
        let daemon = Daemon::start_of(config).await;
        for dialect in DIALECTS {
            let told = Told { target, ..USUAL };
            let answer = send(&daemon, &told.request(dialect, "", &[], [&[], &[]])).await;
            assert_eq!(answer.status, status, "{dialect} {target}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_token_that_the_gateway_has_verified_names_the_key() {
    let mut config = config();
    config.rules.rules.push(rule("/jwt", &["api {jwt.sub|ip}"]));
    config.jwt = Some(Jwt::unverified());
    let daemon = Daemon::start_of(config).await;
    // {"alg":"RS256"}, {"sub":"u"}
    let token = "Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ1In0.";
    for (more, key) in [(&[token][..], "jwt.sub=u"), (&[], "ip=203.0.113.7")] {
        let told = Told { target: "/jwt", ..USUAL };
        let answer = send(&daemon, &told.request("envoy", "", &[], [more, &[]])).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(used(&daemon, "api", key).await, "1");
    }
}

/// A store that is away leaves the answer to the policy, which is a decision.
#[tokio::test]
async fn a_policys_answer_for_its_store_is_a_decision() {
    // Nobody listens at a port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = format!("store: {{ url: \"redis://127.0.0.1:{port}\", connect_timeout: 10ms }}");
    let policies = r#"
policies:
  open: { limits: ["1/min log"], on_store_error: allow }
  shut: { limits: ["1/min log"], on_store_error: deny }
"#;
    let mut config = Config::from_yaml(&format!("{store}{policies}")).unwrap();
    config.rules.rules = vec![rule("/open", &["open all"]), rule("/shut", &["shut all"])];
    let daemon = Daemon::start_of_store(config).await;
    for dialect in DIALECTS {
        for (target, status) in [("/open", 200), ("/shut", 429)] {
            let told = Told { target, ..USUAL };
            let answer = send(&daemon, &told.request(dialect, "", &[], [&[], &[]])).await;
            assert_eq!(answer.status, status, "{dialect} {target}: {}", answer.body);
            let body = match status {
                200 => String::new(),
                _ => body(
                    DENIED,
                    "the limits are unavailable at the moment; try again later",
                    &["shut"],
                    "null",
                ),
            };
            assert_eq!(answer.body, body, "{dialect}");
        }
    }
}

/// Which tier it is, the rule says; what a client may ask for without there being one is the usual.
#[tokio::test]
async fn a_tier_is_of_whom_the_rule_says() {
    let yaml = r#"
policies:
  api: { limits: ["1/min log"], tiers: { pro: ["3/min log"] } }
rules:
  - { match: { path: "/**" }, policy: api, key: "{header.x-api-key}", tier: "{header.x-plan}" }
"#;
    for (dialect, lines, admitted) in [
        ("nginx", &["X-Api-Key: k"][..], 1),
        ("caddy", &["X-Api-Key: k", "X-Plan: pro"], 3),
        ("traefik", &["X-Api-Key: k", "X-Plan: max"], 1),
        ("haproxy", &["X-Api-Key: k", "X-Plan: \u{fc}"], 1),
        ("envoy", &["X-Api-Key: k", "X-Plan: "], 1),
    ] {
        let daemon = Daemon::start_with(yaml).await;
        let request = USUAL.request(dialect, "", &[], [lines, &[]]);
        for asked in 1..=4_u32 {
            let answer = send(&daemon, &request).await;
            let status = if asked <= admitted { 200 } else { 429 };
            assert_eq!(answer.status, status, "{dialect} {asked}: {}", answer.body);
            // Either way the client may know its limit.
            let left = admitted.saturating_sub(asked);
            let told = answer.header("ratelimit").unwrap_or_default();
            assert!(told.starts_with(&format!("\"api\";r={left};")), "{dialect} {asked}: {told}");
        }
    }
}

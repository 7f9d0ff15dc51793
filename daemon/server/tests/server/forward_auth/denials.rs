//! Allowed and denied requests.

use tollgate::Micros;
use tollgate_server::rules::{Jwt, OnNoRule};

use super::problem_documents::{DENIED, body};
use super::*;
use crate::support::unreachable_store;

#[tokio::test]
async fn denials_name_the_policy_and_the_wait_but_never_the_key() {
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config()).await;
        let forwarded = ForwardedRequest::to("/login");
        let request = forwarded.encode(gateway);
        let allowed = send(&daemon, &request).await;
        assert_eq!((allowed.status, &*allowed.body), (200, ""), "{gateway}");
        assert_eq!(allowed.header("cache-control"), Some("no-store"));
        daemon.clock.advance(Micros::new(59_400_000));
        let denied = send(&daemon, &request).await;
        assert_eq!(denied.status, 429, "{gateway}");
        assert_eq!(denied.header("retry-after"), Some("1"));
        assert_eq!(denied.header("cache-control"), Some("no-store"));
        assert_eq!(denied.header("content-type"), Some("application/problem+json"));
        let body = r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"The quota is exceeded","status":429,"detail":"try again in 0.6 s","violated-policies":["login"],"retry_after":0.6}"#;
        assert_eq!(denied.body, body, "{gateway}");
        daemon.clock.advance(Micros::new(600_000));
        assert_eq!(send(&daemon, &request).await.status, 200, "{gateway}");
    }
}

#[tokio::test]
async fn the_deny_parameter_sets_the_status() {
    for gateway in ["nginx", "caddy", "traefik", "haproxy"] {
        for (query, status) in [
            ("", 429),
            ("/", 429),
            ("/anything", 429),
            ("?deny=403", 403),
            ("?deny=401", 401),
            ("?deny=429", 429),
        ] {
            let daemon = Daemon::start_with_config(config()).await;
            let forwarded = ForwardedRequest::to("/login");
            let request = ForwardedRequest { query, ..forwarded }.encode(gateway);
            assert_eq!(send(&daemon, &request).await.status, 200, "{gateway} {query}");
            let denied = send(&daemon, &request).await;
            assert_eq!(denied.status, status, "{gateway} {query}");
            assert_eq!(denied.header("retry-after"), Some("60"), "{gateway} {query}");
            assert!(denied.body.contains(&format!(r#""status":{status},"#)), "{}", denied.body);
        }
    }
}

#[tokio::test]
async fn every_method_is_answered_and_bodies_are_ignored() {
    for (gateway, method, more) in [
        ("nginx", "HEAD", ""),
        ("caddy", "OPTIONS", ""),
        ("haproxy", "HEAD", ""),
        ("traefik", "POST", "{not json"),
        ("envoy", "HEAD", ""),
        ("envoy", "PUT", "{not json"),
        ("envoy", "PURGE", ""),
    ] {
        let daemon = Daemon::start_with_config(config()).await;
        let forwarded = ForwardedRequest::to("/login");
        let length = format!("Content-Length: {}", more.len());
        let request =
            ForwardedRequest { before: &["Connection: close"], after: &[&length], ..forwarded }
                .encode(gateway);
        let request = format!("{method}{}{more}", request.strip_prefix("GET").unwrap());
        for status in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 429 Too Many Requests\r\n"] {
            let mut client = daemon.connect().await;
            client.send(&request).await.unwrap();
            let response = client.read_until_closed().await;
            assert!(response.starts_with(status), "{gateway} {method}: {response}");
            let has_body = response.split_once("\r\n\r\n").is_some_and(|(_, x)| !x.is_empty());
            assert_eq!(has_body, status.contains("429") && method != "HEAD", "{gateway} {method}");
        }
    }
}

/// Clients control these headers. Without a decision, a gateway that fails open would admit them.
#[tokio::test]
async fn ambiguous_client_headers_are_denied() {
    let mut config = config();
    config.limits.key_bytes = 32;
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config.clone()).await;
        let long = format!("X-Api-Key: {}", "k".repeat(33));
        let several = "the request has several values for header.x-api-key; send one";
        for (target, more, status, expected) in [
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
            let forwarded = ForwardedRequest::to(target);
            let response =
                ForwardedRequest { before: more, ..forwarded }.send(&daemon, gateway).await;
            assert_eq!(response.status, status, "{gateway} {target}: {}", response.body);
            assert!(response.body.contains(expected), "{gateway}: {}", response.body);
        }
    }
}

#[tokio::test]
async fn all_checks_of_a_rule_are_decided_together() {
    let daemon = Daemon::start_with_config(config()).await;
    let forwarded = ForwardedRequest::to("/two");
    let request = ForwardedRequest { before: &["X-Api-Key: k"], ..forwarded }.encode("nginx");
    for (status, charged) in [(200, "1"), (429, "1"), (429, "1")] {
        let response = send(&daemon, &request).await;
        assert_eq!(response.status, status, "{}", response.body);
        // If the second check denies, the first charges nothing.
        assert_eq!(used(&daemon, "per-ip", "203.0.113.7").await, charged);
        if status == 429 {
            assert!(
                response.body.contains(r#""violated-policies":["login"]"#),
                "{}",
                response.body
            );
        }
    }
}

#[tokio::test]
async fn missing_keys_and_missing_rules_follow_the_configuration() {
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
        // No rule uses the address, so no proxy needs to be trusted.
        config.trusted_proxies = Networks::default();
        let daemon = Daemon::start_with_config(config).await;
        for gateway in GATEWAYS {
            let response = ForwardedRequest::to(target).send(&daemon, gateway).await;
            assert_eq!(response.status, status, "{gateway} {target}: {}", response.body);
        }
    }
}

#[tokio::test]
async fn claims_of_a_token_verified_by_the_gateway_are_keys() {
    let mut config = config();
    config.rules.rules.push(rule("/jwt", &["api {jwt.sub|ip}"]));
    config.jwt = Some(Jwt::unverified());
    let daemon = Daemon::start_with_config(config).await;
    // {"alg":"RS256"}, {"sub":"u"}
    let token = "Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ1In0.";
    for (more, key) in [(&[token][..], "jwt.sub=u"), (&[], "ip=203.0.113.7")] {
        let forwarded = ForwardedRequest::to("/jwt");
        let response =
            send(&daemon, &ForwardedRequest { before: more, ..forwarded }.encode("envoy")).await;
        assert_eq!(response.status, 200, "{}", response.body);
        assert_eq!(used(&daemon, "api", key).await, "1");
    }
}

/// While the store is unavailable the policy decides.
#[tokio::test]
async fn on_store_error_is_a_decision() {
    let url = unreachable_store();
    let store = format!("store: {{ url: \"{url}\", connect_timeout: 10ms }}");
    let policies = r#"
policies:
  open: { limits: ["1/min log"], on_store_error: allow }
  shut: { limits: ["1/min log"], on_store_error: deny }
"#;
    let mut config = Config::from_yaml(&format!("{store}{policies}")).unwrap();
    config.rules.rules = vec![rule("/open", &["open all"]), rule("/shut", &["shut all"])];
    let daemon = Daemon::start_config_on_store(config).await;
    for gateway in GATEWAYS {
        for (target, status) in [("/open", 200), ("/shut", 429)] {
            let response = ForwardedRequest::to(target).send(&daemon, gateway).await;
            assert_eq!(response.status, status, "{gateway} {target}: {}", response.body);
            let body = match status {
                200 => String::new(),
                _ => body(
                    DENIED,
                    "the limits are unavailable at the moment; try again later",
                    &["shut"],
                    "null",
                ),
            };
            assert_eq!(response.body, body, "{gateway}");
        }
    }
}

/// The rule selects the tier. An unknown tier has the ordinary limits.
#[tokio::test]
async fn the_rule_selects_the_tier() {
    let yaml = r#"
policies:
  api: { limits: ["1/min log"], tiers: { pro: ["3/min log"] } }
rules:
  - { match: { path: "/**" }, policy: api, key: "{header.x-api-key}", tier: "{header.x-plan}" }
"#;
    for (gateway, lines, admitted) in [
        ("nginx", &["X-Api-Key: k"][..], 1),
        ("caddy", &["X-Api-Key: k", "X-Plan: pro"], 3),
        ("traefik", &["X-Api-Key: k", "X-Plan: max"], 1),
        ("haproxy", &["X-Api-Key: k", "X-Plan: \u{fc}"], 1),
        ("envoy", &["X-Api-Key: k", "X-Plan: "], 1),
    ] {
        let daemon = Daemon::start_with(yaml).await;
        let request = ForwardedRequest { before: lines, ..DEFAULT_REQUEST }.encode(gateway);
        for number in 1..=4_u32 {
            let response = send(&daemon, &request).await;
            let status = if number <= admitted { 200 } else { 429 };
            assert_eq!(response.status, status, "{gateway} {number}: {}", response.body);
            // Allowed and denied responses both carry the limit.
            let left = admitted.saturating_sub(number);
            let header = response.header("ratelimit").unwrap();
            assert!(header.starts_with(&format!("\"api\";r={left};")), "{gateway} {number}");
        }
    }
}

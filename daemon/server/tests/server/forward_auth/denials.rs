//! Allowed and denied requests.

use tollgate::Micros;
use tollgate_daemon::rules::{Jwt, OnNoRule};

use super::problem_documents::{DENIED, body};
use super::*;
use crate::metrics::{assert_lines, page};
use crate::support::unreachable_store;

#[tokio::test]
async fn denials_name_the_policy_and_the_wait_but_never_the_key() {
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config()).await;
        let request = ForwardedRequest::to("/login").encode(gateway);
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
            let request = ForwardedRequest { query, ..ForwardedRequest::to("/login") };
            assert_eq!(request.send(&daemon, gateway).await.status, 200, "{gateway} {query}");
            let denied = request.send(&daemon, gateway).await;
            let expected = format!(r#""status":{status},"#);
            denied.assert(status, &expected, format_args!("{gateway} {query}"));
            assert_eq!(denied.header("retry-after"), Some("60"), "{gateway} {query}");
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
        let length = format!("Content-Length: {}", more.len());
        let lines = ["Connection: close", &length];
        let request = ForwardedRequest::to("/login").before(&lines).encode(gateway);
        let request = format!("{method}{}{more}", request.strip_prefix("GET").unwrap());
        for status in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 429 Too Many Requests\r\n"] {
            let response = daemon.send(&request).await.read_until_closed().await;
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
            let response = ForwardedRequest::to(target).before(more).send(&daemon, gateway).await;
            response.assert(status, expected, format_args!("{gateway} {target}"));
        }
    }
}

#[tokio::test]
async fn all_checks_of_a_rule_are_decided_together() {
    let daemon = Daemon::start_with_config(config()).await;
    let request = ForwardedRequest::to("/two").before(&["X-Api-Key: k"]);
    let violated = r#""violated-policies":["login"]"#;
    for (status, expected) in [(200, ""), (429, violated), (429, violated)] {
        request.send(&daemon, "nginx").await.assert(status, expected, "/two");
        // If the second check denies, the first charges nothing.
        assert_eq!(used(&daemon, "per-ip", ADDRESS).await, "1");
    }
}

#[tokio::test]
async fn missing_keys_and_missing_rules_follow_the_configuration() {
    // The last numbers are the requests without a rule that pass, and those that are denied.
    for (target, on_no_rule, status, passed, denied) in [
        ("/skip", OnNoRule::Deny, 200, 0, 0),
        ("/deny", OnNoRule::Pass, 429, 0, 0),
        ("/key", OnNoRule::Pass, 429, 0, 0),
        ("/error", OnNoRule::Deny, 500, 0, 0),
        ("/nowhere", OnNoRule::Pass, 200, GATEWAYS.len(), 0),
        ("/nowhere", OnNoRule::Deny, 429, 0, GATEWAYS.len()),
        ("/nowhere%2Felse", OnNoRule::Deny, 429, 0, GATEWAYS.len()),
    ] {
        let mut config = config();
        config.rules.on_no_rule = on_no_rule;
        // No rule uses the address, so no proxy needs to be trusted.
        config.trusted_proxies = Networks::default();
        let daemon = Daemon::start_with_config(config).await;
        for gateway in GATEWAYS {
            let response = ForwardedRequest::to(target).send(&daemon, gateway).await;
            response.assert(status, "", format_args!("{gateway} {target}"));
        }
        let lines = format!(
            "tollgate_forward_auth_no_rule_total{{outcome=\"pass\"}} {passed}\n\
             tollgate_forward_auth_no_rule_total{{outcome=\"deny\"}} {denied}"
        );
        assert_lines(&page(&daemon).await, &lines);
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
        let response = ForwardedRequest::to("/jwt").before(more).send(&daemon, "envoy").await;
        response.assert(200, "", key);
        assert_eq!(used(&daemon, "api", key).await, "1");
    }
}

/// While the store is unavailable the policy decides.
#[tokio::test]
async fn on_store_error_is_a_decision() {
    let store = format!("store: {{ url: '{}', connect_timeout: 10ms }}", unreachable_store());
    let policies = r#"
policies:
  open: { limits: ["1/min log"], on_store_error: allow }
  shut: { limits: ["1/min log"], on_store_error: deny }
"#;
    let mut config = Config::from_yaml(&format!("{store}{policies}")).unwrap();
    config.rules.rules = vec![rule("/open", &["open all"]), rule("/shut", &["shut all"])];
    let daemon = Daemon::start_on_store(config).await;
    for gateway in GATEWAYS {
        for (target, status) in [("/open", 200), ("/shut", 429)] {
            let response = ForwardedRequest::to(target).send(&daemon, gateway).await;
            let detail = "the limits are unavailable at the moment; try again later";
            let body = match status {
                200 => String::new(),
                _ => body(DENIED, detail, &["shut"], "null"),
            };
            assert_eq!((response.status, response.body), (status, body), "{gateway} {target}");
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
        let request = ForwardedRequest::to("/ip").before(lines);
        for number in 1..=4_u32 {
            let response = request.send(&daemon, gateway).await;
            let status = if number <= admitted { 200 } else { 429 };
            response.assert(status, "", format_args!("{gateway} {number}"));
            // Allowed and denied responses both carry the limit.
            let left = admitted.saturating_sub(number);
            let header = response.header("ratelimit").unwrap();
            assert!(header.starts_with(&format!("\"api\";r={left};")), "{gateway} {number}");
        }
    }
}

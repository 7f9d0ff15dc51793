//! Hints about requests that would have no effect silently.

use crate::openapi;
use crate::resp::RespClient;
use crate::support::daemon::Daemon;

const CONFIG: &str = r#"
policies:
  api: { limits: ["2/d log"], tiers: { pro: ["5/d log"] } }
  plain: { limits: ["2/d log"] }
rules:
  - { policy: api, key: "{header.x-api-key|ip}", tier: "{header.x-plan}" }
"#;

const UNUSED: &str = "nothing is counted for this key: it has not been seen, or has recovered";
const FORMS: &str = "; keys of rules[0] look like \"header.x-api-key=…\" or \"ip=…\"";

/// The hint of a response.
fn hint(json: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    json.get("hint").map(|hint| hint.as_str().unwrap().to_owned())
}

async fn send(daemon: &Daemon, operation: &str, fields: &str) -> Option<String> {
    let (path, body) = (format!("/v1/{operation}"), format!("{{{fields}}}"));
    let response = daemon.post(&path, &body).await;
    openapi::assert_documented("POST", &path, &body, &response);
    assert_eq!(response.status, 200, "{path} {body} {}", response.body);
    hint(&response.body)
}

#[tokio::test]
async fn operations_on_a_key_without_state_return_a_hint() {
    let daemon = Daemon::start_with(CONFIG).await;
    let meant = format!("{UNUSED}{FORMS}; did you mean \"header.x-api-key=vip\"?");
    let block = "; the block applies to its next request";
    for (operation, policy, key, expected) in [
        ("inspect", "api", "vip", &*meant),
        ("reset", "api", "vip", &meant),
        ("refund", "api", "vip", &meant),
        ("unblock", "api", "vip", &meant),
        ("inspect", "api", "header.x-api-key=vip", UNUSED),
        ("inspect", "plain", "vip", UNUSED),
        ("penalize", "api", "vip", &meant),
        ("penalize", "plain", "vip", UNUSED),
        ("block", "plain", "user", &format!("{UNUSED}{block}")),
        (
            "block",
            "api",
            "203.0.113.7",
            &format!("{UNUSED}{block}{FORMS}; did you mean \"ip=203.0.113.7\"?"),
        ),
    ] {
        let found =
            send(&daemon, operation, &format!(r#""policy":"{policy}","key":"{key}""#)).await;
        assert_eq!(found.as_deref(), Some(expected), "{operation} {policy} {key}");
    }
}

#[tokio::test]
async fn operations_on_a_key_with_state_return_no_hint() {
    let daemon = Daemon::start_with(CONFIG).await;
    let key = r#""policy":"api","key":"used""#;
    for operation in [
        "check", "inspect", "penalize", "refund", "penalize", "block", "inspect", "reset",
        "inspect", "unblock", "check",
    ] {
        let found = send(&daemon, operation, key).await;
        // The second one finds a blocked key, and the last one an unblocked key.
        assert_eq!(found, None, "{operation}");
    }
}

#[tokio::test]
async fn an_unknown_tier_applies_the_limits_without_a_tier() {
    let daemon = Daemon::start_with(CONFIG).await;
    let expected =
        "policy \"api\" has no tier \"gold\"; it has pro; the limits without a tier apply";
    for (tier, remaining, expected) in [("pro", 4, None), ("gold", 0, Some(expected))] {
        let body = format!(r#"{{"policy":"api","key":"k","tier":"{tier}"}}"#);
        let response = daemon.post("/v1/check", &body).await;
        openapi::assert_documented("POST", "/v1/check", &body, &response);
        response.assert(200, &format!(r#""remaining":{remaining},"#), &body);
        assert_eq!(hint(&response.body).as_deref(), expected);
    }
    let mut redis = RespClient::connect(&daemon).await;
    for (command, expected) in [
        ("PEEK api k TIER gold", expected),
        ("CHECK api other TIER gold", expected),
        ("CHECK api other AND api another TIER gold", expected),
        ("INSPECT api vip", r#"did you mean "header.x-api-key=vip"?"#),
        ("RESET api vip", r#"did you mean "header.x-api-key=vip"?"#),
    ] {
        let reply = redis.call(&format!("TOLLGATE.{command}")).await;
        // The client escapes quotes.
        assert!(reply.replace('\\', "").contains(expected), "{command}: {reply}");
    }
}

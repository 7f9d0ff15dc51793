//! The problem documents of denials.

use serde_json::json;
use tollgate::{Cost, Policies, Policy};
use tollgate_daemon::rules::OnNoRule;

use super::*;

const QUOTA: [&str; 2] =
    ["https://iana.org/assignments/http-problem-types#quota-exceeded", "The quota is exceeded"];
pub(super) const DENIED: [&str; 2] = ["/problems/denied", "The request is denied"];

/// The document with this type and title.
pub(super) fn body(
    [uri, title]: [&str; 2],
    detail: &str,
    violated: &[&str],
    retry_after: &str,
) -> String {
    let (detail, violated) = (json!(detail), json!(violated));
    format!(
        r#"{{"type":"{uri}","title":"{title}","status":429,"detail":{detail},"violated-policies":{violated},"retry_after":{retry_after}}}"#
    )
}

const MORE_POLICIES: &str = r#"
policies:
  once: { limits: ["1/min log"] }
  several: { limits: ["1/h log", "9/s log", "1/d log"] }
  roomy: { limits: ["100/s"] }
  ghost: { limits: ["1/h log"], shadow: true }
  listed: { limits: ["9/min log"], deny: ["eve"] }
"#;

#[tokio::test]
async fn problem_documents_name_the_denying_limits_and_the_wait() {
    let mut config = Config::from_yaml(MORE_POLICIES).unwrap();
    let mut dear = rule("/dear", &["once dear", "roomy dear"]);
    dear.checks[0].cost = Cost::new(2).unwrap();
    config.rules.rules = vec![
        rule("/once", &["once {path}"]),
        // Of a policy's limits, those that deny, by their names in the headers.
        rule("/several", &["roomy {path}", "several {path}"]),
        rule("/both", &["several {path}", "once {path}", "ghost {path}"]),
        // The same policy twice is named once.
        rule("/twice", &["once a", "roomy a", "once b"]),
        rule("/ghost", &["ghost {path}"]),
        dear,
        rule("/listed", &["listed {header.x-api-key}", "roomy all"]),
        rule("/mixed", &["once mixed", "listed {header.x-api-key}"]),
        rule("/key", &["once {header.x-api-key}"]),
    ];
    config.rules.on_no_rule = OnNoRule::Deny;
    let daemon = Daemon::start_with_config(config).await;
    let never = "waiting does not help";
    let day = "try again in 86400 s";
    for (target, key, denial) in [
        ("/once", "", None),
        ("/once", "", Some((QUOTA, "try again in 60 s", &["once"][..], "60"))),
        ("/several", "", None),
        ("/several", "", Some((QUOTA, day, &["several.2", "several.3"], "86400"))),
        ("/both", "", None),
        ("/both", "", Some((QUOTA, day, &["several.2", "several.3", "once"], "86400"))),
        ("/twice", "", None),
        ("/twice", "", Some((QUOTA, "try again in 60 s", &["once"], "60"))),
        ("/ghost", "", None),
        ("/ghost", "", None),
        ("/dear", "", Some((QUOTA, never, &["once"], "null"))),
        ("/listed", "eve", Some((DENIED, never, &["listed"], "null"))),
        ("/mixed", "bob", None),
        // Waiting for the limit does not help, because the list denies too.
        ("/mixed", "eve", Some((QUOTA, never, &["once", "listed"], "null"))),
        ("/key", "", Some((DENIED, "the request has no header.x-api-key", &[], "null"))),
        ("/nowhere", "", Some((DENIED, "no rule matches this request", &[], "null"))),
    ] {
        let (status, expected) = match denial {
            None => (200, String::new()),
            Some((kind, detail, violated, retry)) => (429, body(kind, detail, violated, retry)),
        };
        let line = format!("X-Api-Key: {key}");
        let more = if key.is_empty() { vec![] } else { vec![&*line] };
        let response = ForwardedRequest::to(target).before(&more).send(&daemon, "caddy").await;
        assert_eq!((response.status, &*response.body), (status, &*expected), "{target} {key}");
        let waits = status == 429 && !expected.contains("null");
        assert_eq!(response.header("retry-after").is_some(), waits, "{target} {key}");
    }
}

#[tokio::test]
async fn problem_documents_have_a_bounded_length() {
    let names: Vec<_> = (0..16).map(|n| format!("p{n:02}-{}", "x".repeat(124))).collect();
    let mut config = config();
    config.policies = Policies::default();
    for name in &names {
        let limits: Policy = "1/min log; 1/h log; 1/d log".parse().unwrap();
        config.policies.add(Policy::new(name, limits.limits().to_vec()).unwrap()).unwrap();
    }
    let key = format!("{{header.{}}}", "x".repeat(2_000));
    let checks: Vec<_> = names.iter().map(|name| format!("{name} {{ip}}")).collect();
    let checks: Vec<_> = checks.iter().map(|check| &**check).collect();
    config.rules.rules =
        vec![rule("/names", &checks), rule("/key", &[&format!("{} {key}", names[0])])];
    let daemon = Daemon::start_with_config(config).await;
    for gateway in GATEWAYS {
        for (target, expected) in [("/names", &*format!("[\"{}.1\",", names[0])), ("/key", "…\"")]
        {
            let request = ForwardedRequest::to(target);
            request.send(&daemon, gateway).await;
            let response = request.send(&daemon, gateway).await;
            response.assert(429, expected, gateway);
            assert!(response.body.len() < 1_024, "{gateway}: {}", response.body);
            serde_json::from_str::<serde_json::Value>(&response.body).unwrap();
            // It does not contain the key.
            assert!(!response.body.contains(ADDRESS), "{gateway}: {}", response.body);
        }
    }
}

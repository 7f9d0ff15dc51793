//! Overrides and tiers as peers meet them: the same form of a policy for every verb on a key.

use crate::daemon::Daemon;
use crate::rows;

const POLICIES: &str = r#"
policies:
  api:
    limits: ["2/d log"]
    deny: ["10.6.6.6"]
    overrides: { vip: ["5/d log"], "10.0.0.0/8": unlimited }
    tiers: { pro: ["9/d log"], free: ["1/d log"] }
  queue:
    limits: ["1/h queue 2"]
    overrides: { vip: ["1/h queue 5"] }
    tiers: { pro: ["1/h queue 9"] }
  slots:
    limits: ["2 concurrent lease 60s"]
    overrides: { vip: ["5 concurrent lease 60s"] }
    tiers: { pro: ["9 concurrent lease 60s"] }
  bare: { limits: ["2/d log"] }
"#;

/// For each policy, what its key and its tier are given.
const GIVEN: &[(&str, &str, &str)] = &[
    ("api", "5/d log", "9/d log"),
    ("queue", "1/h queue 5", "1/h queue 9"),
    ("slots", "5 concurrent lease 1min", "9 concurrent lease 1min"),
];

#[tokio::test]
async fn the_form_that_decides_is_that_of_the_key_and_the_tier() {
    let daemon = Daemon::start_with(POLICIES).await;
    let checked = rows::check_all(&daemon, include_str!("overrides.rows")).await;
    assert!(checked > 12, "only {checked} rows were found");
}

/// What a verb needs besides a policy and a key, and the policies that it can be asked of.
const VERBS: &[(&str, &str, &[&str])] = &[
    ("check", "", &["api", "queue", "slots"]),
    ("peek", "", &["api", "queue", "slots"]),
    ("take", r#","cost":3"#, &["api", "queue"]),
    ("reserve", r#","max_wait":"3h""#, &["queue"]),
    ("cancel", r#","reservation_id":"0000000000000000000000000000000a""#, &["queue"]),
    ("refund", "", &["api", "queue"]),
    ("penalize", "", &["api", "queue"]),
    ("reset", "", &["api", "queue", "slots"]),
    ("block", r#","for":"1s""#, &["api", "queue", "slots"]),
    ("unblock", "", &["api", "queue", "slots"]),
    ("acquire", "", &["slots"]),
    ("renew", r#","lease_id":"0000000000000000000000000000000a""#, &["slots"]),
    ("release", r#","lease_id":"0000000000000000000000000000000a""#, &["slots"]),
    ("inspect", "", &["api", "queue", "slots"]),
];

#[tokio::test]
async fn every_verb_has_the_form_of_the_key_and_the_tier() {
    let daemon = Daemon::start_with(POLICIES).await;
    for (verb, fields, policies) in VERBS {
        for (policy, of_key, of_tier) in GIVEN.iter().filter(|x| policies.contains(&x.0)) {
            for (key, tier, limits) in [
                ("vip", "", of_key),
                ("vip", r#","tier":"pro""#, of_key),
                ("user", r#","tier":"pro""#, of_tier),
            ] {
                let body = format!(r#"{{"policy":"{policy}","key":"{key}"{tier}{fields}}}"#);
                let answer = daemon.post(&format!("/v1/{verb}?status=200"), &body).await;
                assert_eq!(answer.status, 200, "{verb} {body}: {}", answer.body);
                let said = format!(r#""limit":"{limits}""#);
                assert!(answer.body.contains(&said), "{verb} {body}: {}", answer.body);
            }
        }
    }
}

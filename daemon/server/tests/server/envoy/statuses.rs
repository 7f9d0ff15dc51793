//! The statuses of requests, in rows: the two ways of charging, options of rules, and domains that
//! name policies.

use super::client::{call, connect};
use super::{assert_response, check_all, config, start};
use crate::metrics::page;
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::split_table;

/// Checks each section of a row file, which begins with `= `, on a daemon of its own. The file must
/// have this many sections and requests.
async fn check_sections(
    file: &str,
    sections: usize,
    requests: usize,
    start: impl AsyncFn() -> Daemon,
) {
    let mut checked = 0;
    for section in split_table(file, "= ", sections) {
        let (_, rows) = section.split_once('\n').unwrap();
        checked += check_all(&start().await, rows).await;
    }
    assert_eq!(checked, requests);
}

const ATOMIC: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: path, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: shadow, rate_limit: { unit: hour, requests_per_unit: 2 }, shadow_mode: true }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: quiet, rate_limit: { unit: hour, requests_per_unit: 0 }, shadow_mode: true }
  - { key: bucket, rate_limit: { limit: \"10/s burst 20\", name: ours } }
  - { key: pair, rate_limit: { limit: \"2/s fixed; 5/15min fixed\" } }
";

#[tokio::test]
async fn atomic_charging_matches_the_rows() {
    check_sections(include_str!("atomic.rows"), 7, 31, async || start("", ATOMIC).await).await;
}

#[tokio::test]
async fn requests_that_cannot_be_charged_atomically_are_rejected() {
    let daemon = start("", ATOMIC).await;
    let many = |count: usize| (0..count).map(|n| format!(" | user={n}")).collect::<String>();
    let refusal = "InvalidArgument: 33 descriptors have limits, more than the 32 that can be charged all \
                   or nothing; send fewer, or set envoy.charging to reference";
    let mut client = connect(&daemon).await;
    assert_eq!(call(&mut client, &format!("domain{}", many(33))).await, refusal);
    let response = call(&mut client, &format!("domain{}", many(32))).await;
    assert!(response.starts_with("OK | OK 3/MINUTE 2 20s"), "{response}");
    // Descriptors without a limit do not count.
    let free = " | free=a".repeat(1_000);
    let response = call(&mut client, &format!("domain{free}")).await;
    assert_eq!(response.matches(" | OK - 0 -").count(), 1_000);
}

/// A limit for each unit, and the limits in the tests of envoyproxy/ratelimit.
const REFERENCE: &str = "
domain: domain
descriptors:
  - { key: second, rate_limit: { unit: second, requests_per_unit: 10 } }
  - { key: minute, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: hour, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: day, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: fifteen, rate_limit: { unit: hour, requests_per_unit: 15 } }
  - { key: fourteen, rate_limit: { unit: hour, requests_per_unit: 14 } }
  - { key: twenty, rate_limit: { unit: second, requests_per_unit: 20 } }
  - { key: eight, rate_limit: { unit: second, requests_per_unit: 8 } }
  - { key: shadow, rate_limit: { unit: hour, requests_per_unit: 15 }, shadow_mode: true }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: a_b, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - key: two
    descriptors: [{ key: deep, rate_limit: { unit: day, requests_per_unit: 3, name: deep } }]
";

#[tokio::test]
async fn reference_charging_matches_the_rows() {
    let start = async || start("charging: reference", REFERENCE).await;
    check_sections(include_str!("reference.rows"), 4, 32, start).await;
}

/// Rules with and without a quota, one in shadow mode, and rules that replace others.
const OPTIONS: &str = "
domain: domain
descriptors:
  - { key: quota, rate_limit: { unit: hour, requests_per_unit: 1 }, quota_mode: true }
  - { key: other_quota, rate_limit: { unit: hour, requests_per_unit: 2 }, quota_mode: true }
  - { key: plain, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: shadow, rate_limit: { unit: hour, requests_per_unit: 1 }, shadow_mode: true }
  - { key: banned, rate_limit: { unit: hour, requests_per_unit: 1, name: banned } }
  - { key: pardon, rate_limit: { unit: hour, requests_per_unit: 3, replaces: [{ name: banned }] } }
  - { key: free, rate_limit: { unlimited: true, replaces: [{ name: banned }] } }
";

/// The settings for the ways of charging.
const CHARGING: [&str; 2] = ["charging: atomic", "charging: reference"];

#[tokio::test]
async fn options_of_rules_match_the_rows_in_both_charging_modes() {
    for charging in CHARGING {
        let start = async || start(charging, OPTIONS).await;
        check_sections(include_str!("options.rows"), 1, 18, start).await;
    }
}

#[tokio::test]
async fn global_shadow_mode_admits_and_keeps_the_descriptor_statuses() {
    for charging in CHARGING {
        let daemon = start(&format!("shadow: true, {charging}"), OPTIONS).await;
        let rows = "
> domain | plain=a
< OK | OK 1/HOUR 0 800s
> domain | plain=a
< OK | OVER_LIMIT 1/HOUR 0 800s
> domain | quota=a | plain=a
< OK | OK 1/HOUR 0 800s | OVER_LIMIT 1/HOUR 0 800s
";
        check_all(&daemon, rows).await;
        // No client was denied.
        let page = page(&daemon).await;
        for (answer, checks) in [("denied", 0), ("never", 0), ("shadow_denied", 2)] {
            let series = format!(
                "tollgate_decisions_total{{policy=\"@envoy.domain\",answer=\"{answer}\",\
                 surface=\"envoy\"}} {checks}\n"
            );
            assert!(page.contains(&series), "{charging}: {page}");
        }
    }
}

#[tokio::test]
async fn global_quota_mode_applies_to_every_rule() {
    let mut config = config("charging: reference", OPTIONS);
    config.envoy.compat.quota_mode = true;
    let daemon = Daemon::start_with_config(config).await;
    let rows = "
> domain | plain=a | quota=a
< OK | OK 1/HOUR 0 800s | OK 1/HOUR 0 800s
> domain | plain=a | other_quota=a
< OK | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 1 800s
> domain | plain=a | quota=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OVER_LIMIT 1/HOUR 0 800s
> domain | plain=a | unlimited=a
< OK | OVER_LIMIT 1/HOUR 0 800s | OK - 0 -
> domain | plain=a | free=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OK - all -
";
    check_all(&daemon, rows).await;
}

#[tokio::test]
async fn domains_that_name_policies_match_the_rows() {
    let more = "
  guarded: { limits: [1/min log], allow: ['user=root'], deny: ['user=eve'] }
  vips: { limits: [1/min log], overrides: { 'user=vip': [5/min log] } }
";
    let start = async || {
        let daemon = Daemon::start_with(&format!("{POLICIES}{more}")).await;
        for body in [
            r#"{"policy":"guarded","key":"user=mallory","for":"90s"}"#,
            r#"{"policy":"guarded","key":"user=oscar"}"#,
        ] {
            daemon.post("/v1/block", body).await;
        }
        daemon
    };
    check_sections(include_str!("policies.rows"), 3, 21, start).await;
}

#[tokio::test]
async fn different_entries_never_share_a_key() {
    let daemon = Daemon::start().await;
    let rows = "
> log +2 | user=7
< OK | OK 2/MINUTE log 0 60s
> log | user=7 path=
< OK | OK 2/MINUTE log 1 60s
> log | user=7;path=
< OK | OK 2/MINUTE log 1 60s
> log | user=7%3Bpath=
< OK | OK 2/MINUTE log 1 60s
";
    check_all(&daemon, rows).await;
    let body = r#"{"policy":"log","key":"user=7"}"#;
    assert_eq!(daemon.post("/v1/check", body).await.status, 429, "the same key over HTTP");
    let body = r#"{"policy":"log","key":"user=7%3Bpath%3D"}"#;
    assert_eq!(daemon.post("/v1/check", body).await.status, 200);
    assert_response(&daemon, "log | user=7;path=", "OVER_LIMIT | OVER_LIMIT 2/MINUTE log 0 60s")
        .await;
}

#[tokio::test]
async fn undecidable_requests_are_rejected_with_the_reason() {
    let daemon = Daemon::start_with_options(|config| config.limits.key_bytes = 64).await;
    let mut client = connect(&daemon).await;
    for (request, error) in [
        (
            "log | ".to_owned(),
            "InvalidArgument: descriptors[0] has no entries for its key; send at least one",
        ),
        (
            format!("log | user=7 | user={}", "7".repeat(60)),
            "InvalidArgument: descriptors[1] has a key of 65 bytes, more than the maximum of \
             64; send hashes of long values",
        ),
        ("log | user=7 5/UNKNOWN".to_owned(), "InvalidArgument: descriptors[0].limit.unit: "),
        (
            "slots | user=7".to_owned(),
            "InvalidArgument: slots limits requests in flight, which this service cannot \
             release; use /v1/acquire and /v1/release",
        ),
    ] {
        let response = call(&mut client, &request).await;
        assert!(response.starts_with(error), "{request}: {response}");
    }
}

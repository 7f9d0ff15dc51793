//! Limits, shadow limits, response headers, and the failure mode of Envoy.

use std::thread::sleep;
use std::time::Duration;

use tollgate_testkit::GatewayKind;

use super::setup::Setup;
use super::{CHARGING_MODES, check, check_in, with_setup};

#[test]
fn requests_above_the_limit_are_denied() {
    check_in(
        &CHARGING_MODES,
        "
        /two who=a mood=calm => 200 2 of 3
        /two who=a mood=calm => 200 1 of 3
        /two who=a mood=calm => 200 0 of 3
        /two who=a mood=calm => 429 0 of 3
        /two who=a mood=calm => 429 0 of 3
        /two who=b mood=calm => 200 2 of 3
        /two who=a mood=other => 200 -
        /two => 200 -
        ",
    );
}

#[test]
fn shadow_limit_denies_no_request() {
    check_in(
        &CHARGING_MODES,
        "
        /two who=a mood=shady => 200 2 of 3
        /two who=a mood=shady => 200 1 of 3
        /two who=a mood=shady => 200 0 of 3
        /two who=a mood=shady => 200 0 of 3
        /two who=a mood=shady => 200 0 of 3
        ",
    );
}

#[test]
fn values_without_a_rule_of_their_own_are_counted_separately() {
    check_in(
        &CHARGING_MODES,
        "
        /one only=a => 200 1 of 2
        /one only=a => 200 0 of 2
        /one only=a => 429 0 of 2
        /one only=b => 200 1 of 2
        ",
    );
}

#[test]
fn headers_contain_window_reset_time_and_name_of_the_limit() {
    with_setup("reference", |setup| {
        let seconds = |x: Option<&str>| -> u32 { x.unwrap().parse().unwrap() };
        let year = 1..=365 * 24 * 60 * 60;
        for status in [200, 429] {
            let response = setup.request("/two who=a plan=basic");
            assert_eq!(response.status, status);
            let limit = response.header("x-ratelimit-limit");
            assert_eq!(limit, Some("1, 1;w=31536000;name=\"basic\""));
            assert!(year.contains(&seconds(response.header("x-ratelimit-reset"))), "{response:?}");
            if status == 429 {
                assert!(year.contains(&seconds(response.header("retry-after"))), "{response:?}");
            }
        }
    });
}

#[test]
fn headers_describe_the_limit_with_the_fewest_remaining_requests() {
    check_in(
        &["atomic"],
        "
        /two who=a plan=other mood=calm => 200 2 of 3
        /two who=a plan=basic mood=calm => 200 0 of 1
        /two who=a plan=basic mood=calm => 429 0 of 1
        # The denied request was not charged.
        /two who=a mood=calm => 200 0 of 3
        ",
    );
    check_in(
        &["reference"],
        "
        /two who=a plan=other mood=calm => 200 2 of 3
        /two who=a plan=basic mood=calm => 200 0 of 1
        /two who=a plan=basic mood=calm => 429 0 of 1
        # The denied request was charged.
        /two who=a mood=calm => 429 0 of 3
        ",
    );
}

/// After a restart of the daemon, requests are limited again.
#[test]
fn failure_mode_of_envoy_applies_while_the_daemon_is_unavailable() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    for (fails_closed, status) in [(false, 200), (true, 500)] {
        let mut setup = Setup::with("atomic", fails_closed);
        check(
            &setup,
            "
            /two who=a plan=basic => 200 0 of 1
            /two who=a plan=basic => 429 0 of 1
        ",
        );
        setup.daemon.kill();
        for _ in 0..3 {
            let response = setup.request("/two who=a plan=basic");
            assert_eq!(response.status, status, "{response:?}");
            assert_eq!(response.header("x-ratelimit-limit"), None);
        }
        assert_eq!(setup.reached()[0], if fails_closed { 0 } else { 3 });
        // The state in memory is lost.
        setup.daemon.restart();
        wait_for_decision(&setup);
    }
}

/// Sends requests until one is denied: Envoy needs a moment to connect again.
fn wait_for_decision(setup: &Setup) {
    let is_limited = (0..3_000).any(|_| {
        sleep(Duration::from_millis(10));
        setup.request("/two who=b plan=basic").status == 429
    });
    assert!(is_limited, "the daemon does not decide again");
}

//! Quotas, and charges after the response of the application.

use std::thread;
use std::time::Duration;

use super::setup::Setup;
use super::{CHARGING_MODES, check, check_in, with_setup};

/// Envoy reports the first of several quotas with equally few remaining requests.
#[test]
fn request_passes_while_one_quota_remains() {
    check_in(
        &CHARGING_MODES,
        "
        /quota => 200 0 of 1
        /quota => 200 0 of 1
        /quota => 429 0 of 1
        /quota => 429 0 of 1
        ",
    );
}

/// A later charge may exceed the limit once; then no request passes.
#[test]
fn charge_after_the_response_counts_for_the_next_request() {
    with_setup("reference", |setup| {
        for (before, after) in [("2 of 2", "1"), ("1 of 2", "0"), ("0 of 2", "over")] {
            check(setup, &format!("/tokens => 200 {before}"));
            wait_for_remaining(setup, "second", after);
        }
        check(
            setup,
            "
            /tokens => 429 0 of 2
            /left/second => 429 0 of 2
        ",
        );
    });
}

/// The daemon returns the service with a remaining quota, and Envoy routes the request to it.
#[test]
fn request_is_routed_to_the_service_with_a_remaining_quota() {
    with_setup("reference", |setup| {
        for (at, left) in [(0, "0"), (0, "over"), (1, "1"), (1, "0"), (1, "over")] {
            let response = setup.request("/services");
            assert_eq!(response.status, 200, "{response:?}");
            let mut served = [0, 0];
            served[at] = 1;
            assert_eq!(setup.reached(), served, "{left}: {response:?}");
            wait_for_remaining(setup, ["first", "second"][at], left);
        }
        check(setup, "/services => 429 0 of 1");
    });
}

/// Waits until the quota of a service has the expected remainder, or is exhausted: Envoy charges
/// after it has responded.
#[track_caller]
fn wait_for_remaining(setup: &Setup, service: &str, expected: &str) {
    // Half a minute; normally it takes some milliseconds.
    for _ in 0..3_000 {
        let response = setup.request(&format!("/left/{service}"));
        let left = match response.status {
            429 => "over",
            _ => response.header("x-ratelimit-remaining").unwrap(),
        };
        setup.reached();
        if left == expected {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the remainder is never {expected}");
}

//! Quotas, of which one that is left is enough, and charges after the application's answer.

use std::thread;
use std::time::Duration;

use super::stage::Stage;
use super::{BOTH, check, staged};

/// Of several with as little left Envoy tells the first.
#[test]
fn a_request_passes_while_one_quota_is_left() {
    for charging in BOTH {
        staged(charging, |stage| {
            check(
                stage,
                "
                /quota => 200 0 of 1
                /quota => 200 0 of 1
                /quota => 429 0 of 1
                /quota => 429 0 of 1
            ",
            );
        });
    }
}

/// What is charged afterwards may go above the limit once, and then nothing passes.
#[test]
fn what_is_charged_after_the_answer_counts_for_the_next_request() {
    staged("reference", |stage| {
        for (before, after) in [("2 of 2", "1"), ("1 of 2", "0"), ("0 of 2", "over")] {
            check(stage, &format!("/tokens => 200 {before}"));
            until_left(stage, "second", after);
        }
        check(
            stage,
            "
            /tokens => 429 0 of 2
            /left/second => 429 0 of 2
        ",
        );
    });
}

/// The daemon says whose quota is left, and Envoy sends the request there.
#[test]
fn the_service_with_quota_left_serves() {
    staged("reference", |stage| {
        for (at, left) in [(0, "0"), (0, "over"), (1, "1"), (1, "0"), (1, "over")] {
            let answer = stage.ask("/services");
            assert_eq!(answer.status, 200, "{answer:?}");
            let mut served = [0, 0];
            served[at] = 1;
            assert_eq!(stage.reached(), served, "{left}: {answer:?}");
            until_left(stage, ["first", "second"][at], left);
        }
        check(stage, "/services => 429 0 of 1");
    });
}

/// Looks until so much is left of a service's quota, or it is over: Envoy charges after it has
/// answered.
#[track_caller]
fn until_left(stage: &Stage, service: &str, expected: &str) {
    // It takes some milliseconds; after half a minute it will not come.
    for _ in 0..3_000 {
        let answer = stage.ask(&format!("/left/{service}"));
        let left = match answer.status {
            429 => "over",
            _ => answer.header("x-ratelimit-remaining").unwrap(),
        };
        stage.reached();
        if left == expected {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{expected} are never left");
}

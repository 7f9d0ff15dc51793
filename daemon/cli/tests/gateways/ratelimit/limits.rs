//! Limits, those that only record, and what the headers say of them.

use super::{BOTH, check, staged};

#[test]
fn a_limit_is_kept_and_told() {
    for charging in BOTH {
        staged(charging, |stage| {
            check(
                stage,
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
        });
    }
}

#[test]
fn shadow_limit_denies_no_request() {
    for charging in BOTH {
        staged(charging, |stage| {
            check(
                stage,
                "
                /two who=a mood=shady => 200 2 of 3
                /two who=a mood=shady => 200 1 of 3
                /two who=a mood=shady => 200 0 of 3
                /two who=a mood=shady => 200 0 of 3
                /two who=a mood=shady => 200 0 of 3
            ",
            );
        });
    }
}

#[test]
fn a_value_that_no_rule_names_is_counted_by_itself() {
    for charging in BOTH {
        staged(charging, |stage| {
            check(
                stage,
                "
                /one only=a => 200 1 of 2
                /one only=a => 200 0 of 2
                /one only=a => 429 0 of 2
                /one only=b => 200 1 of 2
            ",
            );
        });
    }
}

/// What has no end of its window near: a whole year at most, and one second at least.
#[test]
fn headers_tell_the_window_its_end_and_the_name_of_the_limit() {
    staged("reference", |stage| {
        let seconds = |x: Option<&str>| -> u32 { x.unwrap().parse().unwrap() };
        let year = 1..=365 * 24 * 60 * 60;
        for status in [200, 429] {
            let answer = stage.ask("/two who=a plan=basic");
            assert_eq!(answer.status, status);
            let limit = answer.header("x-ratelimit-limit");
            assert_eq!(limit, Some("1, 1;w=31536000;name=\"basic\""));
            assert!(year.contains(&seconds(answer.header("x-ratelimit-reset"))), "{answer:?}");
            if status == 429 {
                assert!(year.contains(&seconds(answer.header("retry-after"))), "{answer:?}");
            }
        }
    });
}

#[test]
fn of_several_limits_the_one_with_the_least_left_is_told() {
    staged("atomic", |stage| {
        check(
            stage,
            "
            /two who=a plan=other mood=calm => 200 2 of 3
            /two who=a plan=basic mood=calm => 200 0 of 1
            /two who=a plan=basic mood=calm => 429 0 of 1
            # The denied one was charged nothing.
            /two who=a mood=calm => 200 0 of 3
        ",
        );
    });
    staged("reference", |stage| {
        check(
            stage,
            "
            /two who=a plan=other mood=calm => 200 2 of 3
            /two who=a plan=basic mood=calm => 200 0 of 1
            /two who=a plan=basic mood=calm => 429 0 of 1
            # The denied one was charged too.
            /two who=a mood=calm => 429 0 of 3
        ",
        );
    });
}

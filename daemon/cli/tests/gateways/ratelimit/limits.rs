//! Limits, shadow limits and response headers.

use super::{CHARGING_MODES, check, with_setup};

#[test]
fn requests_above_the_limit_are_denied() {
    for charging in CHARGING_MODES {
        with_setup(charging, |setup| {
            check(
                setup,
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
    for charging in CHARGING_MODES {
        with_setup(charging, |setup| {
            check(
                setup,
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
fn values_without_a_rule_of_their_own_are_counted_separately() {
    for charging in CHARGING_MODES {
        with_setup(charging, |setup| {
            check(
                setup,
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

#[test]
fn headers_contain_window_reset_time_and_name_of_the_limit() {
    with_setup("reference", |setup| {
        let seconds = |x: Option<&str>| -> u32 { x.unwrap().parse().unwrap() };
        let year = 1..=365 * 24 * 60 * 60;
        for status in [200, 429] {
            let answer = setup.ask("/two who=a plan=basic");
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
fn headers_describe_the_limit_with_the_fewest_remaining_requests() {
    with_setup("atomic", |setup| {
        check(
            setup,
            "
            /two who=a plan=other mood=calm => 200 2 of 3
            /two who=a plan=basic mood=calm => 200 0 of 1
            /two who=a plan=basic mood=calm => 429 0 of 1
            # The denied request was not charged.
            /two who=a mood=calm => 200 0 of 3
        ",
        );
    });
    with_setup("reference", |setup| {
        check(
            setup,
            "
            /two who=a plan=other mood=calm => 200 2 of 3
            /two who=a plan=basic mood=calm => 200 0 of 1
            /two who=a plan=basic mood=calm => 429 0 of 1
            # The denied request was charged.
            /two who=a mood=calm => 429 0 of 3
        ",
        );
    });
}

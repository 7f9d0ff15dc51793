//! `charging: reference`: the statuses in the tests of envoyproxy/ratelimit, with its configuration.
//! The clock is 40 s into a minute, 2,800 s into an hour and 53,200 s into a day.

use super::{check_all, start};

/// A limit for each unit, and the limits in its tests of statistics.
const LIMITS: &str = "
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
  - key: two
    descriptors: [{ key: deep, rate_limit: { unit: day, requests_per_unit: 3, name: deep } }]
";

#[tokio::test]
async fn statuses_match_envoyproxy_ratelimit() {
    let daemon = start("charging: reference", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain | second=a +5
        < OK | OK 10/SECOND 5 1s
        > domain | minute=a +10
        < OK | OK 10/MINUTE 0 20s
        # A descriptor without a limit is allowed.
        > domain | minute=a | other=a
        < OVER_LIMIT | OVER_LIMIT 10/MINUTE 0 20s | OK - 0 -
        > domain | hour=a +11
        < OVER_LIMIT | OVER_LIMIT 10/HOUR 0 800s
        # A peek charges nothing and reports the current state.
        > domain | hour=a +0
        < OVER_LIMIT | OVER_LIMIT 10/HOUR 0 800s
        > domain | day=a +10
        < OK | OK 10/DAY 0 33200s
        > domain | day=a +0
        < OK | OK 10/DAY 0 33200s
        > domain | fifteen=a +11
        < OK | OK 15/HOUR 4 800s
        > domain | fifteen=a +2
        < OK | OK 15/HOUR 2 800s
        > domain | fifteen=a +3
        < OVER_LIMIT | OVER_LIMIT 15/HOUR 0 800s
        > domain | twenty=a +2
        < OK | OK 20/SECOND 18 1s
        > domain +3 | twenty=a | eight=a
        < OK | OK 20/SECOND 15 1s | OK 8/SECOND 5 1s
        > domain +2 | eight=a +5
        < OK | OK 8/SECOND 0 1s
        > domain | twenty=a +14
        < OK | OK 20/SECOND 1 1s
        > domain | twenty=a +3
        < OVER_LIMIT | OVER_LIMIT 20/SECOND 0 1s
        > domain | second=b +30
        < OVER_LIMIT | OVER_LIMIT 10/SECOND 0 1s
        > domain | second=b +0
        < OVER_LIMIT | OVER_LIMIT 10/SECOND 0 1s
        > domain | shadow=a +16
        < OK | OK 15/HOUR 0 800s
        > domain | shadow=a
        < OK | OK 15/HOUR 0 800s
        > domain | none=a
        < OVER_LIMIT | OVER_LIMIT 0/HOUR 0 -
        > domain | free=a | none=
        < OVER_LIMIT | OK - all - | OVER_LIMIT 0/HOUR 0 -
        > domain | two=a deep=b
        < OK | OK 3/DAY deep 2 33200s
        > domain | two=a
        < OK | OK - 0 -
        > unknown | second=a
        < OK | OK - 0 -
        # The next window starts empty.
        + 20000000
        > domain | minute=a
        < OK | OK 10/MINUTE 9 60s
        ",
    )
    .await;
}

#[tokio::test]
async fn each_descriptor_is_charged_independently() {
    let daemon = start("charging: reference", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain +13 | fifteen=a | fourteen=a
        < OK | OK 15/HOUR 2 800s | OK 14/HOUR 1 800s
        > domain +2 | fifteen=a | fourteen=a
        < OVER_LIMIT | OK 15/HOUR 0 800s | OVER_LIMIT 14/HOUR 0 800s
        > domain | fifteen=a | fourteen=a
        < OVER_LIMIT | OVER_LIMIT 15/HOUR 0 800s | OVER_LIMIT 14/HOUR 0 800s
        ",
    )
    .await;
}

#[tokio::test]
async fn errors_have_the_texts_of_envoyproxy_ratelimit() {
    let daemon = start("charging: reference", LIMITS).await;
    check_all(
        &daemon,
        "
        > | second=a
        < Unknown: rate limit domain must not be empty
        > domain
        < Unknown: rate limit descriptor list must not be empty
        ",
    )
    .await;
}

#[tokio::test]
async fn keys_that_envoyproxy_ratelimit_confuses_are_distinct() {
    let limits = "
domain: domain
descriptors:
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: a_b, rate_limit: { unit: hour, requests_per_unit: 1 } }
";
    let daemon = start("charging: reference", limits).await;
    check_all(
        &daemon,
        "
        > domain | a_b=c
        < OK | OK 1/HOUR 0 800s
        > domain | a=b_c
        < OK | OK 1/HOUR 0 800s
        ",
    )
    .await;
}

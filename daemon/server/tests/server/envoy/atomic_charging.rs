//! `charging: atomic`: all descriptors of a request are charged, or none.

use super::client::{call, connect};
use super::{check_all, start};

const LIMITS: &str = "
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
async fn a_denied_request_charges_nothing() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain +3 | user=a | path=a
        < OK | OK 3/MINUTE 0 20s | OK 5/HOUR 2 800s
        > domain | user=a | path=a
        < OVER_LIMIT | OVER_LIMIT 3/MINUTE 0 20s | OK 5/HOUR 2 800s
        > domain | user=b | path=a
        < OK | OK 3/MINUTE 2 20s | OK 5/HOUR 1 800s
        # Nor does a request above the limit, which has no reset time.
        > domain +6 | user=b | path=a
        < OVER_LIMIT | OVER_LIMIT 3/MINUTE 2 - | OVER_LIMIT 5/HOUR 1 -
        > domain | user=b +0 | path=a +0
        < OK | OK 3/MINUTE 2 20s | OK 5/HOUR 1 800s
        # A peek and a charge in one request.
        > domain | user=b | path=a +0
        < OK | OK 3/MINUTE 1 20s | OK 5/HOUR 1 800s
        # Two descriptors with the same key are charged together.
        > domain | user=b | user=b
        < OVER_LIMIT | OVER_LIMIT 3/MINUTE 1 20s | OVER_LIMIT 3/MINUTE 1 20s
        ",
    )
    .await;
}

#[tokio::test]
async fn shadow_limits_admit_and_are_not_charged_past_their_limit() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain +2 | shadow=a | path=a
        < OK | OK 2/HOUR 0 800s | OK 5/HOUR 3 800s
        > domain | shadow=a | path=a
        < OK | OK 2/HOUR 0 800s | OK 5/HOUR 2 800s
        > domain | shadow=a -1
        < OK | OK 2/HOUR 1 800s
        > domain | quiet=a | path=a
        < OK | OK 0/HOUR 0 - | OK 5/HOUR 1 800s
        ",
    )
    .await;
}

#[tokio::test]
async fn a_limit_of_zero_denies_and_nothing_is_charged() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain | none=a | path=a
        < OVER_LIMIT | OVER_LIMIT 0/HOUR 0 - | OK 5/HOUR 5 0s
        > domain | path=a
        < OK | OK 5/HOUR 4 800s
        ",
    )
    .await;
}

#[tokio::test]
async fn limits_may_be_in_our_notation() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain +19 | bucket=a
        < OK | OK 10/SECOND ours 1 2s
        > domain +2 | bucket=a
        < OVER_LIMIT | OVER_LIMIT 10/SECOND ours 1 1s
        # The binding limit is reported, here with a window that is not a unit.
        > domain +2 | pair=a
        < OK | OK 2/SECOND 0 800s
        + 1000000
        > domain +2 | pair=a
        < OK | OK 2/SECOND 0 799s
        + 1000000
        > domain +2 | pair=a
        < OVER_LIMIT | OVER_LIMIT 5/UNKNOWN 1 798s
        ",
    )
    .await;
}

#[tokio::test]
async fn negative_hits_refund() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain +3 | user=a | path=a
        < OK | OK 3/MINUTE 0 20s | OK 5/HOUR 2 800s
        # A refund by one descriptor does not help another that is over its limit.
        > domain | user=a -2 | path=a +9
        < OVER_LIMIT | OK 3/MINUTE 2 20s | OVER_LIMIT 5/HOUR 2 -
        # A refund does not exceed the limit.
        > domain | user=a -100
        < OK | OK 3/MINUTE 3 0s
        > domain | user=a -0
        < OK | OK 3/MINUTE 3 0s
        ",
    )
    .await;
}

#[tokio::test]
async fn request_limits_override_configured_limits() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain | user=a 2/DAY
        < OK | OK 2/DAY 1 33200s
        > domain | user=a 2/DAY
        < OK | OK 2/DAY 0 33200s
        > domain | user=a 2/DAY
        < OVER_LIMIT | OVER_LIMIT 2/DAY 0 33200s
        # Also for descriptors without a configured limit, in a known domain.
        > domain | new=a 1/HOUR
        < OK | OK 1/HOUR 0 800s
        > elsewhere | new=a 1/HOUR
        < OK | OK - 0 -
        > domain | user=a 0/HOUR
        < OVER_LIMIT | OVER_LIMIT 0/HOUR 0 -
        > domain | user=a 1/UNKNOWN
        < InvalidArgument: descriptors[0].limit.unit: unknown unit 0; send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR
        ",
    )
    .await;
}

#[tokio::test]
async fn requests_that_cannot_be_charged_atomically_are_rejected() {
    let daemon = start("", LIMITS).await;
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
    check_all(
        &daemon,
        "
        > | user=a
        < InvalidArgument: domain is empty; send that of a file of envoy.config, or the name of a policy
        > domain
        < InvalidArgument: descriptors is empty; send at least one
        ",
    )
    .await;
}

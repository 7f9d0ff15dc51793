//! Domains that name policies.

use super::{assert_response, check_all, client};
use crate::support::daemon::Daemon;

#[tokio::test]
async fn a_domain_may_name_a_policy() {
    let daemon = Daemon::start().await;
    check_all(
        &daemon,
        "
        > log | user=7
        < OK | OK 2/MINUTE log 1 60s
        > log | user=7
        < OK | OK 2/MINUTE log 0 60s
        > log | user=7
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE log 0 60s
        + 30500000
        > log | user=7 | user=8
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE log 0 30s | OK 2/MINUTE log 2 0s
        > log | user=7 +0
        < OK | OK 2/MINUTE log 0 30s
        > log | user=7 -1
        < OK | OK 2/MINUTE log 1 30s
        > log | user=9 +3
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE log 2 -
        > log +2 | user=9 path=/
        < OK | OK 2/MINUTE log 0 60s
        # The binding limit of two.
        > pair +2 | a=b
        < OK | OK 2/MINUTE pair 0 770s
        > pair | a=b
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE pair 0 50s
        > bucket +2 | a=b
        < OK | OK 2/SECOND bucket 0 1s
        # A shadow limit admits the request.
        > ghost +2 | a=b
        < OK | OK 1/MINUTE ghost 1 0s
        > unknown | user=7
        < OK | OK - 0 -
        ",
    )
    .await;
}

#[tokio::test]
async fn different_entries_never_share_a_key() {
    let daemon = Daemon::start().await;
    check_all(
        &daemon,
        "
        > log +2 | user=7
        < OK | OK 2/MINUTE log 0 60s
        > log | user=7 path=
        < OK | OK 2/MINUTE log 1 60s
        > log | user=7;path=
        < OK | OK 2/MINUTE log 1 60s
        > log | user=7%3Bpath=
        < OK | OK 2/MINUTE log 1 60s
        ",
    )
    .await;
    let body = r#"{"policy":"log","key":"user=7"}"#;
    assert_eq!(daemon.post("/v1/check", body).await.status, 429, "the same key over HTTP");
    let body = r#"{"policy":"log","key":"user=7%3Bpath%3D"}"#;
    assert_eq!(daemon.post("/v1/check", body).await.status, 200);
    assert_response(&daemon, "log | user=7;path=", "OVER_LIMIT | OVER_LIMIT 2/MINUTE log 0 60s")
        .await;
}

#[tokio::test]
async fn lists_and_blocks_apply_before_limits() {
    let yaml =
        "policies: { it: { limits: [1/min log], allow: ['user=root'], deny: ['user=eve'] } }";
    let daemon = Daemon::start_with(yaml).await;
    daemon.post("/v1/block", r#"{"policy":"it","key":"user=mallory","for":"90s"}"#).await;
    daemon.post("/v1/block", r#"{"policy":"it","key":"user=oscar"}"#).await;
    check_all(
        &daemon,
        "
        > it +9 | user=root
        < OK | OK - all -
        > it | user=eve
        < OVER_LIMIT | OVER_LIMIT - 0 -
        > it | user=mallory
        < OVER_LIMIT | OVER_LIMIT 1/MINUTE it 0 90s
        > it | user=oscar
        < OVER_LIMIT | OVER_LIMIT 1/MINUTE it 0 -
        # A request that a list denies charges nothing.
        > it | user=eve | user=7
        < OVER_LIMIT | OVER_LIMIT - 0 - | OK 1/MINUTE it 1 0s
        ",
    )
    .await;
}

#[tokio::test]
async fn overrides_apply_to_their_keys() {
    let yaml = "policies: { it: { limits: [1/min log], overrides: { 'user=vip': [5/min log] } } }";
    let daemon = Daemon::start_with(yaml).await;
    check_all(
        &daemon,
        "
        > it | user=vip
        < OK | OK 5/MINUTE it 4 60s
        > it | user=7 3/HOUR
        < OK | OK 3/HOUR it 2 800s
        > it | user=8 0/HOUR | user=9
        < OVER_LIMIT | OVER_LIMIT 0/HOUR it 0 - | OK 1/MINUTE it 1 0s
        ",
    )
    .await;
}

#[tokio::test]
async fn undecidable_requests_are_rejected_with_the_reason() {
    let daemon = Daemon::start_with_options(|config| config.limits.key_bytes = 64).await;
    let mut client = client::connect(&daemon).await;
    for (request, error) in [
        ("log | ".to_owned(), "InvalidArgument: descriptors[0] has no entries; send at least one"),
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
        let response = client::call(&mut client, &request).await;
        assert!(response.starts_with(error), "{request}: {response}");
    }
}

//! Domains that are names of our own policies.

use super::{check_all, client};
use crate::daemon::Daemon;

#[tokio::test]
async fn a_domain_may_be_the_name_of_a_policy() {
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
        # The limit that binds of two.
        > pair +2 | a=b
        < OK | OK 2/MINUTE pair 0 770s
        > pair | a=b
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE pair 0 50s
        > bucket +2 | a=b
        < OK | OK 2/SECOND bucket 0 1s
        # A shadow stops nobody; lists and blocks have no limit to tell.
        > ghost +2 | a=b
        < OK | OK 1/MINUTE ghost 1 0s
        > unknown | user=7
        < OK | OK - 0 -
        ",
    )
    .await;
}

#[tokio::test]
async fn a_key_is_its_entries_and_nothing_else_can_be_written_so() {
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
    let asked = r#"{"policy":"log","key":"user=7"}"#;
    assert_eq!(daemon.post("/v1/check", asked).await.status, 429, "the same key over HTTP");
    let asked = r#"{"policy":"log","key":"user=7%3Bpath%3D"}"#;
    assert_eq!(daemon.post("/v1/check", asked).await.status, 200);
    check_all(
        &daemon,
        "
        > log | user=7;path=
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE log 0 60s
        ",
    )
    .await;
}

#[tokio::test]
async fn lists_and_blocks_decide_before_any_limit() {
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
        # Nothing is charged of a request that a list denies.
        > it | user=eve | user=7
        < OVER_LIMIT | OVER_LIMIT - 0 - | OK 1/MINUTE it 1 0s
        ",
    )
    .await;
}

#[tokio::test]
async fn keys_have_the_limits_that_overrides_give_them() {
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
async fn what_no_policy_can_decide_is_refused_with_its_reason() {
    let daemon = Daemon::start_changed(|x| x.limits.key_bytes = 64).await;
    let mut client = client::connect(&daemon).await;
    for (request, refusal) in [
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
        let answer = client::ask(&mut client, &request).await;
        assert!(answer.starts_with(refusal), "{request}: {answer}");
    }
}

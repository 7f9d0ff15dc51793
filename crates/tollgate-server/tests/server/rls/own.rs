//! Domains that are names of our own policies.

use super::check_all;
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
        > unknown | user=7
        < OK | OK - 0 -
        ",
    )
    .await;
}

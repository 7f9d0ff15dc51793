//! What rules say beside their limits: quotas, shadows, replacing, and all at once.

use super::{check_all, config, start};
use crate::daemon::Daemon;

/// A rule of a quota of 1, one that is not, one in shadow, and rules that replace.
const LIMITS: &str = "
domain: domain
descriptors:
  - { key: quota, rate_limit: { unit: hour, requests_per_unit: 1 }, quota_mode: true }
  - { key: other_quota, rate_limit: { unit: hour, requests_per_unit: 2 }, quota_mode: true }
  - { key: plain, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: shadow, rate_limit: { unit: hour, requests_per_unit: 1 }, shadow_mode: true }
  - { key: banned, rate_limit: { unit: hour, requests_per_unit: 1, name: banned } }
  - { key: pardon, rate_limit: { unit: hour, requests_per_unit: 3, replaces: [{ name: banned }] } }
  - { key: free, rate_limit: { unlimited: true, replaces: [{ name: banned }] } }
";

/// Both ways to charge agree on what these say.
const MIXES: &str = "
> domain | quota=a | plain=a
< OK | OK 1/HOUR 0 800s | OK 1/HOUR 0 800s
# A quota that is over stops nobody as long as another is not.
> domain | quota=a | other_quota=a
< OK | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 1 800s
> domain | quota=a | other_quota=a
< OK | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 0 800s
> domain | quota=a | other_quota=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OVER_LIMIT 2/HOUR 0 800s
> domain | quota=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s
# What is of no quota stops by itself, and what nothing limits is none.
> domain | plain=a | other_quota=b
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 1 800s
> domain | quota=a | unlimited=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OK - 0 -
> domain | quota=a | plain=b
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OK 1/HOUR 0 800s
> domain | quota=a | other_quota=c | plain=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 1 800s | OVER_LIMIT 1/HOUR 0 800s
> domain | shadow=a | plain=c
< OK | OK 1/HOUR 0 800s | OK 1/HOUR 0 800s
> domain | shadow=a
< OK | OK 1/HOUR 0 800s
> domain | shadow=a | plain=c
< OVER_LIMIT | OK 1/HOUR 0 800s | OVER_LIMIT 1/HOUR 0 800s
> domain | banned=a
< OK | OK 1/HOUR banned 0 800s
> domain | banned=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR banned 0 800s
# The rule that is replaced is not asked, whatever the order.
> domain | banned=a | pardon=a
< OK | OK - 0 - | OK 3/HOUR 2 800s
> domain | pardon=a | banned=a
< OK | OK 3/HOUR 1 800s | OK - 0 -
> domain | banned=a | free=a
< OK | OK - 0 - | OK - all -
> domain | banned=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR banned 0 800s
";

#[tokio::test]
async fn quotas_shadows_and_what_is_replaced_mean_the_same_however_it_is_charged() {
    for charging in ["charging: atomic", "charging: reference"] {
        check_all(&start(charging, LIMITS).await, MIXES).await;
    }
}

#[tokio::test]
async fn where_all_is_in_shadow_the_statuses_keep_what_they_say() {
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = start(&format!("shadow: true, {charging}"), LIMITS).await;
        check_all(
            &daemon,
            "
            > domain | plain=a
            < OK | OK 1/HOUR 0 800s
            > domain | plain=a
            < OK | OVER_LIMIT 1/HOUR 0 800s
            > domain | quota=a | plain=a
            < OK | OK 1/HOUR 0 800s | OVER_LIMIT 1/HOUR 0 800s
            ",
        )
        .await;
    }
}

#[tokio::test]
async fn the_reference_can_have_all_rules_be_of_quotas() {
    let mut config = config("charging: reference", LIMITS);
    config.envoy.compat.quota_mode = true;
    let daemon = Daemon::start_of(config).await;
    check_all(
        &daemon,
        "
        > domain | plain=a | quota=a
        < OK | OK 1/HOUR 0 800s | OK 1/HOUR 0 800s
        > domain | plain=a | other_quota=a
        < OK | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 1 800s
        > domain | plain=a | quota=a
        < OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OVER_LIMIT 1/HOUR 0 800s
        > domain | plain=a | unlimited=a
        < OK | OVER_LIMIT 1/HOUR 0 800s | OK - 0 -
        > domain | plain=a | free=a
        < OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OK - all -
        ",
    )
    .await;
}

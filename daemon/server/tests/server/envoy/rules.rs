//! Options of rules: quotas, shadow mode, replacements, and combinations.

use super::{check_all, config, start};
use crate::support::daemon::Daemon;

/// Rules with and without a quota, one in shadow mode, and rules that replace others.
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

/// Rows with the same responses in both charging modes.
const COMBINATIONS: &str = "
> domain | quota=a | plain=a
< OK | OK 1/HOUR 0 800s | OK 1/HOUR 0 800s
# A quota that is over does not deny while another quota is not over.
> domain | quota=a | other_quota=a
< OK | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 1 800s
> domain | quota=a | other_quota=a
< OK | OVER_LIMIT 1/HOUR 0 800s | OK 2/HOUR 0 800s
> domain | quota=a | other_quota=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s | OVER_LIMIT 2/HOUR 0 800s
> domain | quota=a
< OVER_LIMIT | OVER_LIMIT 1/HOUR 0 800s
# A limit without a quota denies on its own. A descriptor without a limit is not a quota.
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
# A replaced rule is not checked, in any order.
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
async fn quotas_shadows_and_replacements_work_in_both_charging_modes() {
    for charging in ["charging: atomic", "charging: reference"] {
        check_all(&start(charging, LIMITS).await, COMBINATIONS).await;
    }
}

#[tokio::test]
async fn global_shadow_mode_admits_and_keeps_the_descriptor_statuses() {
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
async fn global_quota_mode_applies_to_every_rule() {
    let mut config = config("charging: reference", LIMITS);
    config.envoy.compat.quota_mode = true;
    let daemon = Daemon::start_with_config(config).await;
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

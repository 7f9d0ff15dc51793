//! Metrics of the rate limit service.

use super::{check_all, start};
use crate::metrics::{assert_values, decisions, page};

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: shadow, rate_limit: { unit: minute, requests_per_unit: 1 }, shadow_mode: true }
";

#[tokio::test]
async fn decisions_are_counted_under_the_policy_of_their_domain() {
    let daemon = start("", LIMITS).await;
    check_all(
        &daemon,
        "
        > domain +2 | user=a
        < OK | OK 2/MINUTE 0 20s
        > domain | user=a | user=b | free=a
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE 0 20s | OK 2/MINUTE 2 0s | OK - 0 -
        > domain | user=b +3
        < OVER_LIMIT | OVER_LIMIT 2/MINUTE 2 -
        > domain | shadow=a +2
        < OK | OK 1/MINUTE 1 0s
        # A refund is not a decision.
        > domain | user=a -1
        < OK | OK 2/MINUTE 1 20s
        > elsewhere | user=a
        < OK | OK - 0 -
        > domain
        < InvalidArgument: descriptors is empty; send at least one
        ",
    )
    .await;
    let decisions = |answer| decisions("@envoy.domain", answer, "envoy");
    assert_values(
        &page(&daemon).await,
        &[
            (&decisions("allowed"), "2"),
            (&decisions("denied"), "1"),
            (&decisions("never"), "1"),
            (&decisions("shadow_denied"), "1"),
            ("tollgate_http_requests_total{listener=\"grpc\",status=\"2xx\"}", "6"),
            ("tollgate_http_requests_total{listener=\"grpc\",status=\"4xx\"}", "1"),
        ],
    );
}

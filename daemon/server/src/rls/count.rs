//! Counting a request as the reference counts it.

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use tollgate::Decision;

use super::asked::{Asked, Hits, Target};
use super::batch::Said;
use super::stats::{Before, Counted};
use super::status::Spoken;
use crate::http::Exchange;

/// Counts a request that was answered.
pub(super) fn count(
    exchange: &Exchange<'_>,
    request: &RateLimitRequest,
    asked: &[Asked<'_>],
    said: &[Said],
    spoken: &[Spoken],
) {
    let stats = &exchange.daemon.rls;
    let envoy = &exchange.live.envoy;
    for ((asked, said), spoken) in asked.iter().zip(said).zip(spoken) {
        match &asked.target {
            Target::Unknown => stats.count_unknown(&request.domain),
            Target::Rule(rule) if !rule.rule.is_unlimited() => {
                let Hits::Charge(cost) = asked.hits else { continue };
                let (limit, before) = used(said, spoken);
                let is_shadow = rule.rule.shadow;
                let counted = Counted { hits: cost.get(), limit, before, is_shadow };
                stats.count(&request.domain, &rule.stat, envoy.compat.near_limit, counted);
            }
            Target::Free | Target::Rule(_) | Target::Own(_) => {}
        }
    }
    if said.iter().any(Said::is_degraded) {
        stats.count_store_error();
    }
}

/// The limit of a descriptor, and what was used of it before.
fn used(said: &Said, spoken: &Spoken) -> (u64, Before) {
    let Said::Decided { decision, before, .. } = said else { return (0, Before::Over) };
    let Decision { capacity, remaining, degraded, .. } = *decision;
    let before = match (before, spoken.is_over) {
        (Some(before), _) => Before::Used(capacity.saturating_sub(*before)),
        // Nothing is known of what was used, but that the policy let it pass.
        (None, false) if degraded => return (u64::MAX, Before::Used(0)),
        (None, false) => {
            let left = remaining.saturating_add(decision.granted);
            Before::Used(capacity.saturating_sub(left))
        }
        // Where all are charged or none, none of them passes; one alone is over as a whole.
        (None, true) => Before::Over,
    };
    (capacity, before)
}

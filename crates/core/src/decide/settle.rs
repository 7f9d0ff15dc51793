//! Settlements: the actual cost of an admitted check in place of the estimate that it charged.

use alloc::vec::Vec;

use super::context::CheckContext;
use super::operations::{change_each, penalize};
use crate::algorithm::{Anomalies, Refund};
use crate::decision::Decision;
use crate::time::Timestamp;

/// What a check charged to a key, as a store recorded it under the id of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCharge {
    /// The cost that was charged.
    pub cost: u64,
    /// The time of the charge.
    pub time: Timestamp,
    /// When each limit would have recovered after the charge, in µs since the epoch, in the policy's
    /// canonical order. Empty if the policy has other limits now.
    pub recovers_at: Vec<u64>,
}

/// Replaces a charge by the actual cost, which is that of the context.
///
/// If the charge was higher, the difference is refunded at the time of the charge. A token bucket or a
/// queue refunds no more than would still be used without later charges: the rest has drained, and was
/// free for others in the meantime. If the limits have changed since, it refunds nothing. If the
/// charge was lower, the difference is charged at any level, as a penalty is.
///
/// `granted` is what is charged then: the actual cost, or more if less could be refunded, or less if the
/// debt would be too large. `None` is a check that was not charged, because the limits of its shadow
/// policy denied it or because it repeated an earlier one; it stays as it is.
pub fn settle(
    context: &mut CheckContext<'_>,
    charge: Option<&RecordedCharge>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let Some(charge) = charge else { return context.report(now) };
    let actual = context.cost;
    if actual > charge.cost {
        let decision = penalize(context, actual - charge.cost, now, anomalies);
        return Decision { granted: charge.cost + decision.granted, ..decision };
    }
    let (count, time) = (charge.cost - actual, Some(charge.time));
    let mut recovers_at = charge.recovers_at.iter().copied();
    let decision = change_each(context, now, anomalies, |algorithm, state, usage, _| {
        let recovers_at = Some(recovers_at.next().unwrap_or(0));
        algorithm.refund(state, usage, &Refund { count, time, recovers_at })
    });
    Decision { granted: charge.cost - decision.granted, ..decision }
}

/// Divides what a settlement granted among the checks of one key with these actual costs: each gets its
/// cost as far as it lasts, and the last gets the rest.
#[must_use]
pub fn split_settled(granted: u64, costs: &[u64]) -> Vec<u64> {
    let mut left = granted;
    let mut shares = Vec::with_capacity(costs.len());
    for (index, cost) in costs.iter().enumerate() {
        let share = if index + 1 == costs.len() { left } else { left.min(*cost) };
        left -= share;
        shares.push(share);
    }
    shares
}

//! The content of rate limit headers for one limit, whatever their style.

use std::cmp::Reverse;

use tollgate::{Decision, Limit, LimitDecision, Micros, Policy, Reason, Timestamp};

/// The greatest integer of a structured field (RFC 9651 §3.3.1): 15 digits.
const MAX_SF_INTEGER: u64 = 999_999_999_999_999;
const SECOND: u64 = 1_000_000;

/// One limit, and its state after a decision.
#[derive(Clone, Debug)]
pub(super) struct Quota<'a> {
    policy: &'a Policy,
    /// Its number in the policy, from 1, if the policy has several limits.
    rank: Option<usize>,
    /// Whether an earlier decision of the response was made under the same policy.
    pub(super) is_repeated: bool,
    /// Whether it is the binding limit of its policy.
    pub(super) is_binding: bool,
    pub(super) capacity: u64,
    /// The whole seconds in which the capacity is restored; absent for concurrency limits.
    pub(super) window: Option<u64>,
    /// The greatest cost that would be admitted now.
    pub(super) remaining: u64,
    pub(super) reset: Reset,
    /// The time until a denied request would be admitted, in µs; the longest wait is binding.
    wait: u64,
    time: Timestamp,
}

/// The time until more remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// Nothing is used, so that no more can remain.
    Unused,
    After(Micros),
    /// The key is blocked until an operator unblocks it.
    Never,
}

/// The limits of decisions, in the order of the decisions and of their policies.
pub(super) fn all<'a>(
    decisions: impl Iterator<Item = (&'a Policy, &'a Decision)> + Clone,
) -> impl Iterator<Item = Quota<'a>> + Clone {
    let earlier = decisions.clone();
    let enforced = decisions
        .enumerate()
        .filter(|(_, (policy, decision))| !policy.is_shadow() && !decision.shadow);
    enforced.flat_map(move |(index, (policy, decision))| {
        let mut earlier = earlier.clone().take(index);
        let is_repeated = earlier.any(|(other, _)| other.shares_name(policy));
        let limits = policy.limits().iter().zip(decision.each_limit()).enumerate();
        limits.map(move |(index, (limit, result))| {
            let rank = (policy.limits().len() > 1).then_some(index + 1);
            Quota { rank, is_repeated, ..Quota::new(limit, &result, decision, policy) }
        })
    })
}

/// The binding limit of all, for styles that have headers for one only.
pub(super) fn binding<'a>(quotas: impl Iterator<Item = Quota<'a>>) -> Option<Quota<'a>> {
    quotas.min_by_key(|quota| (Reverse(quota.wait), quota.remaining, quota.capacity))
}

/// The names of the limits that deny, as in the headers; of the policy if none of its limits does.
pub fn violated<'a>(
    decisions: impl Iterator<Item = (&'a Policy, &'a Decision)>,
) -> impl Iterator<Item = String> {
    let denied = decisions.filter(|(_, decision)| !decision.allowed);
    denied.flat_map(|(policy, decision)| {
        let has_one_limit = policy.limits().len() == 1;
        let denying = decision.each_limit().enumerate().filter(|(_, result)| !result.allowed);
        let mut names: Vec<_> =
            denying.map(|(index, _)| format!("{}.{}", policy.name(), index + 1)).collect();
        if has_one_limit || names.is_empty() {
            names = vec![policy.name().to_owned()];
        }
        names
    })
}

impl<'a> Quota<'a> {
    fn new(limit: &Limit, result: &LimitDecision, decision: &Decision, policy: &'a Policy) -> Self {
        let is_blocked = matches!(decision.reason, Reason::Blocked | Reason::Banned)
            || decision.banned_for().is_some();
        let capacity = limit.capacity().min(MAX_SF_INTEGER);
        let window = window(limit);
        // Nothing remains for a blocked or banned key, whatever its counters are.
        let remaining = if is_blocked { 0 } else { result.remaining.min(capacity) };
        let retry_after = if is_blocked { decision.retry_after } else { result.retry_after };
        let reset = match retry_after {
            Some(retry_after) => Reset::After(retry_after),
            None if is_blocked => Reset::Never,
            None if result.reset_after == Micros::ZERO => Reset::Unused,
            // A client that spends the remainder evenly until the reset must not exceed the limit.
            None => {
                let window = window.map_or(0, |window| window.saturating_mul(SECOND));
                let even = mul_div_ceil(remaining, window, capacity);
                Reset::After(result.reset_after.max(Micros::new(even)))
            }
        };
        let wait = match (retry_after, is_blocked || result.never) {
            (Some(retry_after), _) => retry_after.get(),
            (None, true) => u64::MAX,
            (None, false) => 0,
        };
        Quota {
            policy,
            rank: None,
            is_repeated: false,
            is_binding: result.binding,
            capacity,
            window,
            remaining,
            reset,
            wait,
            time: decision.time,
        }
    }

    /// The name of the policy, and the number of the limit if the policy has several.
    pub(super) fn name(&self) -> (&'a str, Option<usize>) {
        (self.policy.name(), self.rank)
    }

    /// The seconds until more remains, rounded up; absent if nothing is used or the key is blocked.
    pub(super) fn delta_seconds(&self) -> Option<u64> {
        match self.reset {
            Reset::Unused | Reset::Never => None,
            Reset::After(time) => Some(time.secs_rounded_up().min(MAX_SF_INTEGER)),
        }
    }

    /// As [`Quota::delta_seconds`], but 0 if nothing is used.
    pub(super) fn reset_seconds(&self) -> Option<u64> {
        self.delta_seconds().or_else(|| (self.reset == Reset::Unused).then_some(0))
    }

    /// The time at which more remains, in seconds since the Unix epoch, rounded up.
    pub(super) fn epoch_seconds(&self) -> Option<u64> {
        let after = match self.reset {
            Reset::Unused => Micros::ZERO,
            Reset::After(time) => time,
            Reset::Never => return None,
        };
        Some(Micros::new(self.time.as_micros().saturating_add(after.get())).secs_rounded_up())
    }
}

/// The whole seconds in which a limit restores its capacity: its window, or longer for a burst.
fn window(limit: &Limit) -> Option<u64> {
    if limit.is_concurrent() {
        return None;
    }
    let spec = limit.spec();
    let micros = mul_div_ceil(limit.capacity(), spec.window.get(), spec.count);
    Some(micros.div_ceil(SECOND).clamp(1, MAX_SF_INTEGER))
}

/// ⌈n·a / b⌉, at most `u64::MAX`.
fn mul_div_ceil(n: u64, a: u64, b: u64) -> u64 {
    let b = b.max(1);
    match n.checked_mul(a) {
        Some(product) => product.div_ceil(b),
        None => {
            let wide = (u128::from(n) * u128::from(a)).div_ceil(u128::from(b));
            u64::try_from(wide).unwrap_or(u64::MAX)
        }
    }
}

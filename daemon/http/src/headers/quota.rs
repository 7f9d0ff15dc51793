//! What headers tell of one limit, whatever their style.

use std::cmp::Reverse;

use tollgate::{Decision, Limit, LimitDecision, Micros, Policy, Reason, Timestamp};

/// The greatest integer of a structured field (RFC 9651 §3.3.1): 15 digits.
const MAX_SF_INTEGER: u64 = 999_999_999_999_999;
const SECOND: u64 = 1_000_000;

/// One limit, and what a decision leaves of it.
#[derive(Clone, Debug)]
pub(super) struct Quota<'a> {
    policy: &'a Policy,
    /// Which of the policy's limits it is, from 1, if it has several.
    rank: Option<usize>,
    /// Whether an earlier decision of the answer was made under the same policy.
    pub(super) is_repeated: bool,
    /// Whether it speaks for its policy.
    pub(super) is_binding: bool,
    /// The most it can hold.
    pub(super) capacity: u64,
    /// The whole seconds in which the capacity comes back; requests in flight have none.
    pub(super) window: Option<u64>,
    /// What could be spent at once.
    pub(super) remaining: u64,
    pub(super) reset: Reset,
    /// How long the request would have to wait, where it was denied: what binds is the longest.
    wait: u64,
    time: Timestamp,
}

/// When there is more to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// There cannot be more: nothing is used.
    Untouched,
    After(Micros),
    /// The key is blocked until an operator unblocks it.
    Never,
}

/// The limits behind decisions, in the order of the decisions and of their policies.
pub(super) fn all<'a>(
    decisions: impl Iterator<Item = (&'a Policy, &'a Decision)> + Clone,
) -> impl Iterator<Item = Quota<'a>> + Clone {
    let earlier = decisions.clone();
    let told = decisions
        .enumerate()
        .filter(|(_, (policy, decision))| !policy.is_shadow() && !decision.shadow);
    told.flat_map(move |(index, (policy, decision))| {
        let mut earlier = earlier.clone().take(index);
        let is_repeated = earlier.any(|(x, _)| x.shares_name(policy));
        let limits = policy.limits().iter().zip(decision.each_limit()).enumerate();
        limits.map(move |(rank, (limit, said))| {
            let quota = Quota::of(limit, &said, decision, policy);
            let rank = (policy.limits().len() > 1).then_some(rank + 1);
            Quota { rank, is_repeated, ..quota }
        })
    })
}

/// The one that speaks for all, for styles that have room for one only.
pub(super) fn binding<'a>(quotas: impl Iterator<Item = Quota<'a>>) -> Option<Quota<'a>> {
    quotas.min_by_key(|quota| (Reverse(quota.wait), quota.remaining, quota.capacity))
}

/// The names of what denies, as headers have them: limits, or the policy where no limit did.
pub(crate) fn violated<'a>(
    decisions: impl Iterator<Item = (&'a Policy, &'a Decision)>,
) -> impl Iterator<Item = String> {
    let denied = decisions.filter(|(_, x)| !x.allowed);
    denied.flat_map(|(policy, decision)| {
        let is_one = policy.limits().len() == 1;
        let denying = decision.each_limit().enumerate().filter(|(_, index)| !index.allowed);
        let mut names: Vec<_> =
            denying.map(|(rank, _)| format!("{}.{}", policy.name(), rank + 1)).collect();
        if is_one || names.is_empty() {
            names = vec![policy.name().to_owned()];
        }
        names
    })
}

impl<'a> Quota<'a> {
    fn of(limit: &Limit, said: &LimitDecision, decision: &Decision, policy: &'a Policy) -> Self {
        let blocked = decision.reason == Reason::Blocked;
        let capacity = limit.capacity().min(MAX_SF_INTEGER);
        let window = window(limit);
        // A blocked key has nothing to spend, whatever its counters are.
        let remaining = if blocked { 0 } else { said.remaining.min(capacity) };
        let retry_after = if blocked { decision.retry_after } else { said.retry_after };
        let reset = match retry_after {
            Some(retry_after) => Reset::After(retry_after),
            None if blocked => Reset::Never,
            None if said.reset_after == Micros::ZERO => Reset::Untouched,
            // What is left, spent evenly until then, must not look faster than the limit.
            None => {
                let window = window.and_then(|window| window.checked_mul(SECOND)).unwrap_or(0);
                let even = mul_div_ceil(remaining, window, capacity);
                Reset::After(said.reset_after.max(Micros::new(even)))
            }
        };
        let wait = match (retry_after, blocked || said.never) {
            (Some(retry_after), _) => retry_after.get(),
            (None, true) => u64::MAX,
            (None, false) => 0,
        };
        Quota {
            policy,
            rank: None,
            is_repeated: false,
            is_binding: said.binding,
            capacity,
            window,
            remaining,
            reset,
            wait,
            time: decision.time,
        }
    }

    /// Its name's parts: the policy, and which of its limits, if it has several.
    pub(super) fn name(&self) -> (&'a str, Option<usize>) {
        (self.policy.name(), self.rank)
    }

    /// Seconds until there is more, rounded up; none where it makes no sense to say.
    pub(super) fn delta_seconds(&self) -> Option<u64> {
        match self.reset {
            Reset::Untouched | Reset::Never => None,
            Reset::After(time) => Some(time.secs_rounded_up().min(MAX_SF_INTEGER)),
        }
    }

    /// The same where a header must say something of an untouched limit: no time at all.
    pub(super) fn reset_seconds(&self) -> Option<u64> {
        self.delta_seconds().or_else(|| (self.reset == Reset::Untouched).then_some(0))
    }

    /// The time in seconds since the Unix epoch, rounded up, at which there is more.
    pub(super) fn epoch_seconds(&self) -> Option<u64> {
        let after = match self.reset {
            Reset::Untouched => Micros::ZERO,
            Reset::After(time) => time,
            Reset::Never => return None,
        };
        Some(Micros::new(self.time.as_micros().saturating_add(after.get())).secs_rounded_up())
    }
}

/// The whole seconds in which a limit gives its capacity: those of its window, but for a burst.
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

//! From the decisions of the limits to that of the policy.

use std::cmp::Reverse;

use tollgate_algorithms::{Check, LimitDecision, Micros, Operation, Reason, Timestamp};

use super::bans::{self, Record};
use super::expected::Expected;
use super::key::Block;
use super::limit::LimitUsage;
use super::number::{Int, bits64};

pub(super) fn micros(int: Int) -> Micros {
    Micros::new(bits64(int))
}

/// The state of a limit as it is reported; the operation sets whether it admits.
pub(super) fn row(limit: &LimitUsage) -> LimitDecision {
    LimitDecision {
        allowed: true,
        capacity: bits64(limit.capacity),
        remaining: bits64(limit.remaining()),
        reset_after: micros(limit.reset_after()),
        ..LimitDecision::default()
    }
}

/// The decision of a policy from those of its limits.
pub(super) fn decision(
    limits: Vec<LimitDecision>,
    allowed: bool,
    record: Option<Record>,
    block: Option<Block>,
    now: Int,
) -> Expected {
    let never = limits.iter().any(|limit| limit.never);
    let longest = limits.iter().filter_map(|limit| limit.retry_after).max();
    let resets = limits.iter().map(|limit| limit.reset_after).max();
    let binding = binding(&limits);
    let mut expected = Expected {
        allowed,
        reason: if never { Reason::Never } else { Reason::Limit },
        never,
        capacity: limits.get(binding).map_or(0, |limit| limit.capacity),
        remaining: limits.iter().map(|limit| limit.remaining).min().unwrap_or(0),
        retry_after: longest.filter(|_| !never),
        reset_after: resets,
        time: Timestamp::from_micros(bits64(now)),
        binding,
        limits,
        ..Expected::default()
    };
    if let Some(row) = expected.limits.get_mut(binding) {
        row.binding = true;
    }
    bans::extend_reset(&mut expected, record, now);
    if let Some(block) = block {
        let end = block.end.map(|end| micros(end - now));
        expected.reset_after = end.max(expected.reset_after).filter(|_| end.is_some());
    }
    expected
}

/// Denies a banned key until the end of the ban, or the retry of the limits if that is later.
pub(super) fn deny_banned(expected: &mut Expected, record: Option<Record>, now: Int) {
    if record.is_some_and(|record| record.is_banned) {
        expected.allowed = false;
        expected.reason = Reason::Banned;
        if !expected.never {
            bans::extend_retry(expected, record, now);
        }
    }
}

/// Denies a blocked key until the end of the block, or the retry of the limits if that is later.
pub(super) fn deny_blocked(expected: &mut Expected, block: Block, now: Int) {
    let end = block.end.map(|end| micros(end - now));
    expected.allowed = false;
    expected.reason = Reason::Blocked;
    expected.retry_after = end.max(expected.retry_after).filter(|_| end.is_some());
    if expected.never {
        expected.retry_after = None;
    }
}

/// The index of the binding limit: on a denial one with `never`, then the longest retry; otherwise the
/// least remaining, the least capacity, and canonical order.
fn binding(limits: &[LimitDecision]) -> usize {
    let order = |index: &usize| {
        let limits = &limits[*index];
        (!limits.never, Reverse(limits.retry_after), limits.remaining, limits.capacity, *index)
    };
    (0..limits.len()).min_by_key(order).unwrap_or(0)
}

/// A shadow policy never denies; the decisions of its limits stay as they are.
pub(super) fn ignore_shadow(
    operation: &Operation,
    check: &Check<'_>,
    expected: Expected,
) -> Expected {
    let shadow = check.policy.is_shadow() && operation.decides();
    if !shadow {
        return expected;
    }
    if expected.replayed {
        // The first decision had no delay.
        return Expected { delay: Micros::ZERO, shadow, ..expected };
    }
    let granted = if *operation == Operation::Peek { 0 } else { check.cost.get() };
    Expected {
        allowed: true,
        reason: Reason::Limit,
        never: false,
        retry_after: None,
        delay: Micros::ZERO,
        granted,
        shadow,
        ..expected
    }
}

//! Decisions as replies, with the names of the JSON API. Times are whole microseconds, and their
//! names end in `_us`; −1 is an absent value, −2 is never.

use std::fmt::Display;

use tollgate::{
    Answer, Block, Decision, Inspection, Limit, LimitDecision, LimitInspection, Micros, Policy,
};

use tollgate_engine::{CheckRequest, ResponseKind};

use super::reply_buffer::ReplyBuffer;

/// An absent value, and a time that never comes.
const ABSENT: i64 = -1;
const NEVER: i64 = -2;

/// Writes the five integers of `CL.THROTTLE`: limited, limit, remaining, and in seconds rounded up
/// when to retry (−1 if now or never) and when the limit is fully recovered.
#[inline]
pub(super) fn write_throttle(out: &mut ReplyBuffer, policy: &Policy, decision: &Decision) {
    // A decision that no limit made has no capacity; the limit is that of the command.
    let capacity = policy.limits().first().map_or(decision.capacity, Limit::capacity);
    let retry_after = decision.retry_after.filter(|_| !decision.allowed);
    out.raw(if decision.allowed { b"*5\r\n:0\r\n" } else { b"*5\r\n:1\r\n" });
    out.count(capacity);
    out.count(decision.remaining);
    match retry_after {
        None => out.raw(b":-1\r\n"),
        Some(retry_after) => out.count(retry_after.secs_rounded_up()),
    }
    // Without a limit there is nothing to recover.
    out.count(decision.reset_after.unwrap_or_default().secs_rounded_up());
}

/// Writes a decision.
pub(super) fn write(
    out: &mut ReplyBuffer,
    policy: &Policy,
    decision: &Decision,
    response: ResponseKind,
    hint: Option<&str>,
) {
    let ids = usize::from(decision.lease.is_some()) + usize::from(decision.reservation.is_some());
    let optional = usize::from(response == ResponseKind::Change) + usize::from(hint.is_some());
    out.map(15 + ids + optional);
    flag(out, "allowed", decision.allowed);
    word(out, "reason", decision.reason_name());
    word(out, "policy", policy.name());
    count(out, "capacity", decision.capacity);
    count(out, "remaining", decision.remaining);
    retry_after(out, decision.retry_after, decision.never);
    flag(out, "never", decision.never);
    time(out, "reset_after_us", decision.reset_after);
    time(out, "delay_us", Some(decision.delay));
    count(out, "granted", decision.granted);
    word(out, "source", decision.source.as_str());
    flag(out, "degraded", decision.degraded);
    flag(out, "replayed", decision.replayed);
    count(out, "time_us", decision.time.as_micros());
    if response == ResponseKind::Change {
        flag(out, "changed", decision.changed);
    }
    if let Some(hint) = hint {
        word(out, "hint", hint);
    }
    if let Some(lease) = decision.lease {
        display(out, "lease_id", lease);
    }
    if let Some(reservation) = decision.reservation {
        display(out, "reservation_id", reservation);
    }
    out.text("limits");
    let limits = policy.limits().iter().zip(decision.each_limit());
    out.array(limits.clone().count());
    limits.for_each(|(limit, result)| write_limit(out, limit, &result, decision.shadow));
}

fn write_limit(out: &mut ReplyBuffer, limit: &Limit, decision: &LimitDecision, is_shadow: bool) {
    out.map(7 + usize::from(is_shadow));
    display(out, "limit", limit);
    flag(out, "allowed", decision.allowed);
    flag(out, "binding", decision.binding);
    count(out, "capacity", decision.capacity);
    count(out, "remaining", decision.remaining);
    retry_after(out, decision.retry_after, decision.never);
    time(out, "reset_after_us", Some(decision.reset_after));
    if is_shadow {
        flag(out, "shadow", true);
    }
}

/// Writes the decisions of several checks in their order.
pub(super) fn write_all(
    out: &mut ReplyBuffer,
    checks: &[CheckRequest<'_>],
    answer: &Answer,
    response: ResponseKind,
) {
    out.map(4);
    flag(out, "allowed", answer.allowed());
    retry_after(out, answer.retry_after(), answer.never());
    flag(out, "never", answer.never());
    out.text("decisions");
    out.array(answer.decisions.len());
    for (check, decision) in checks.iter().zip(&answer.decisions) {
        write(out, &check.policy, decision, response, check.hint.as_deref());
    }
}

/// Writes the state of a key.
pub(super) fn write_inspection(
    out: &mut ReplyBuffer,
    policy: &Policy,
    inspection: &Inspection,
    has_ids: bool,
    hint: Option<&str>,
) {
    out.map(5 + usize::from(hint.is_some()));
    word(out, "policy", policy.name());
    if let Some(hint) = hint {
        word(out, "hint", hint);
    }
    out.text("block");
    match inspection.block {
        None => out.null(),
        Some(block) => {
            out.map(1);
            let ends_after = match block {
                Block::Forever => None,
                Block::Until(end) => Some(end.duration_since(inspection.time)),
            };
            time(out, "ends_after_us", ends_after);
        }
    }
    out.text("limits");
    let limits = policy.limits().iter().zip(&inspection.limits);
    out.array(limits.clone().count());
    limits.for_each(|(limit, state)| write_limit_state(out, limit, state, has_ids));
    out.text("reservations");
    out.array(inspection.reservations.len());
    for reservation in &inspection.reservations {
        out.map(2 + usize::from(has_ids));
        if has_ids {
            display(out, "reservation_id", reservation.id);
        }
        count(out, "cost", reservation.cost);
        time(out, "acts_after_us", Some(reservation.acts_after));
    }
    count(out, "time_us", inspection.time.as_micros());
}

fn write_limit_state(out: &mut ReplyBuffer, limit: &Limit, state: &LimitInspection, has_ids: bool) {
    out.map(6);
    display(out, "limit", limit);
    count(out, "capacity", state.capacity);
    count(out, "used", state.used);
    count(out, "remaining", state.remaining);
    time(out, "reset_after_us", Some(state.reset_after));
    out.text("leases");
    out.array(state.leases.len());
    for lease in &state.leases {
        out.map(2 + usize::from(has_ids));
        if has_ids {
            display(out, "lease_id", lease.id);
        }
        count(out, "cost", lease.cost);
        time(out, "ends_after_us", Some(lease.ends_after));
    }
}

fn flag(out: &mut ReplyBuffer, name: &str, value: bool) {
    out.text(name);
    out.boolean(value);
}

fn word(out: &mut ReplyBuffer, name: &str, word: &str) {
    out.text(name);
    out.text(word);
}

fn display(out: &mut ReplyBuffer, name: &str, value: impl Display) {
    out.text(name);
    out.display(value);
}

fn count(out: &mut ReplyBuffer, name: &str, count: u64) {
    out.text(name);
    out.count(count);
}

fn time(out: &mut ReplyBuffer, name: &str, time: Option<Micros>) {
    out.text(name);
    match time {
        Some(time) => out.count(time.get()),
        None => out.integer(ABSENT),
    }
}

fn retry_after(out: &mut ReplyBuffer, retry_after: Option<Micros>, never: bool) {
    out.text("retry_after_us");
    match retry_after {
        Some(retry_after) => out.count(retry_after.get()),
        None => out.integer(if never { NEVER } else { ABSENT }),
    }
}

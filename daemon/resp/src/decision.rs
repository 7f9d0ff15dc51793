//! Decisions as replies, with the names of the JSON API. Times are whole microseconds, and their
//! names end in `_us`; −1 is an absent value, −2 is never.

use std::fmt::Display;

use tollgate::{
    Answer, BanInspection, Block, Decision, Inspection, Limit, LimitDecision, LimitInspection,
    Micros, Policy, Timestamp,
};

use tollgate_engine::{Action, CheckRequest};

use super::reply_buffer::{ReplyBuffer, encoded};
use super::template;

/// About how many bytes a decision has.
pub(super) const TYPICAL_LEN: usize = 512;

/// An absent value, and a time that never comes.
const ABSENT: &[u8] = b":-1\r\n";
const NEVER: &[u8] = b":-2\r\n";

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
        None => out.raw(ABSENT),
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
    hint: Option<&str>,
) {
    match hint {
        None => {
            template::write(out, policy, decision, |out| write_fields(out, policy, decision, None));
        }
        Some(_) => write_fields(out, policy, decision, hint),
    }
}

fn write_fields(out: &mut ReplyBuffer, policy: &Policy, decision: &Decision, hint: Option<&str>) {
    out.map(15 + id_count(decision) + usize::from(hint.is_some()));
    flag(out, encoded!("allowed"), decision.allowed);
    word(out, encoded!("reason"), decision.reason_name());
    word(out, encoded!("policy"), policy.name());
    count(out, encoded!("capacity"), decision.capacity);
    varying(out, encoded!("remaining"), decision.remaining);
    retry_after(out, decision.retry_after, decision.never);
    flag(out, encoded!("never"), decision.never);
    match decision.reset_after {
        Some(reset_after) => varying(out, encoded!("reset_after_us"), reset_after.get()),
        None => time(out, encoded!("reset_after_us"), None),
    }
    time(out, encoded!("delay_us"), Some(decision.delay));
    count(out, encoded!("granted"), decision.granted);
    word(out, encoded!("source"), decision.source.as_str());
    flag(out, encoded!("degraded"), decision.degraded);
    flag(out, encoded!("replayed"), decision.replayed);
    varying(out, encoded!("time_us"), decision.time.as_micros());
    write_hint_and_ids(out, decision, hint);
    out.raw(encoded!("limits"));
    let limits = policy.limits().iter().zip(decision.each_limit());
    out.array(limits.clone().count());
    limits.for_each(|(limit, result)| write_limit(out, limit, &result, decision.shadow));
}

/// Writes the result of an operation that decides nothing.
pub(super) fn write_change(
    out: &mut ReplyBuffer,
    policy: &Policy,
    action: Action,
    decision: &Decision,
    hint: Option<&str>,
) {
    let block = action.block_after(decision);
    let optional = usize::from(block.is_some()) + usize::from(hint.is_some());
    out.map(9 + id_count(decision) + optional);
    flag(out, encoded!("changed"), decision.changed);
    count(out, encoded!("granted"), decision.granted);
    word(out, encoded!("policy"), policy.name());
    count(out, encoded!("capacity"), decision.capacity);
    count(out, encoded!("remaining"), decision.remaining);
    time(out, encoded!("reset_after_us"), decision.reset_after);
    flag(out, encoded!("replayed"), decision.replayed);
    count(out, encoded!("time_us"), decision.time.as_micros());
    if let Some(block) = block {
        write_block(out, block, decision.time);
    }
    write_hint_and_ids(out, decision, hint);
    out.raw(encoded!("limits"));
    let limits = policy.limits().iter().zip(decision.each_limit());
    out.array(limits.clone().count());
    for (limit, result) in limits {
        out.map(4);
        display(out, encoded!("limit"), limit);
        count(out, encoded!("capacity"), result.capacity);
        count(out, encoded!("remaining"), result.remaining);
        time(out, encoded!("reset_after_us"), Some(result.reset_after));
    }
}

fn id_count(decision: &Decision) -> usize {
    usize::from(decision.lease.is_some()) + usize::from(decision.reservation.is_some())
}

fn write_hint_and_ids(out: &mut ReplyBuffer, decision: &Decision, hint: Option<&str>) {
    if let Some(hint) = hint {
        word(out, encoded!("hint"), hint);
    }
    if let Some(lease) = decision.lease {
        display(out, encoded!("lease_id"), lease);
    }
    if let Some(reservation) = decision.reservation {
        display(out, encoded!("reservation_id"), reservation);
    }
}

fn write_limit(out: &mut ReplyBuffer, limit: &Limit, decision: &LimitDecision, is_shadow: bool) {
    out.map(7 + usize::from(is_shadow));
    display(out, encoded!("limit"), limit);
    flag(out, encoded!("allowed"), decision.allowed);
    flag(out, encoded!("binding"), decision.binding);
    count(out, encoded!("capacity"), decision.capacity);
    varying(out, encoded!("remaining"), decision.remaining);
    retry_after(out, decision.retry_after, decision.never);
    varying(out, encoded!("reset_after_us"), decision.reset_after.get());
    if is_shadow {
        flag(out, encoded!("shadow"), true);
    }
}

/// Writes the decisions of several checks in their order.
pub(super) fn write_all(out: &mut ReplyBuffer, checks: &[CheckRequest<'_>], answer: &Answer) {
    out.map(4);
    flag(out, encoded!("allowed"), answer.allowed());
    retry_after(out, answer.retry_after(), answer.never());
    flag(out, encoded!("never"), answer.never());
    out.raw(encoded!("decisions"));
    out.array(answer.decisions.len());
    for (check, decision) in checks.iter().zip(&answer.decisions) {
        write(out, &check.policy, decision, check.hint.as_deref());
    }
}

/// Writes the results of an operation that decides nothing on several checks, in their order.
pub(super) fn write_changes(
    out: &mut ReplyBuffer,
    checks: &[CheckRequest<'_>],
    action: Action,
    answer: &Answer,
) {
    out.map(2);
    flag(out, encoded!("changed"), answer.decisions.iter().any(|decision| decision.changed));
    out.raw(encoded!("decisions"));
    out.array(answer.decisions.len());
    for (check, decision) in checks.iter().zip(&answer.decisions) {
        write_change(out, &check.policy, action, decision, check.hint.as_deref());
    }
}

fn write_block(out: &mut ReplyBuffer, block: Option<Block>, now: Timestamp) {
    out.raw(encoded!("block"));
    match block {
        None => out.null(),
        Some(block) => {
            out.map(1);
            let ends_after = match block {
                Block::Forever => None,
                Block::Until(end) => Some(end.duration_since(now)),
            };
            time(out, encoded!("ends_after_us"), ends_after);
        }
    }
}

fn write_ban(out: &mut ReplyBuffer, ban: Option<BanInspection>) {
    out.raw(encoded!("ban"));
    let Some(ban) = ban else {
        out.null();
        return;
    };
    out.map(4);
    count(out, encoded!("max_denials"), ban.max_denials);
    count(out, encoded!("denials"), ban.denials);
    time(out, encoded!("window_ends_after_us"), ban.window_ends_after);
    time(out, encoded!("banned_for_us"), ban.banned_for);
}

/// Writes the state of a key.
pub(super) fn write_inspection(
    out: &mut ReplyBuffer,
    policy: &Policy,
    inspection: &Inspection,
    has_ids: bool,
    hint: Option<&str>,
) {
    out.map(6 + usize::from(hint.is_some()) + usize::from(inspection.held.is_some()));
    word(out, encoded!("policy"), policy.name());
    if let Some(hint) = hint {
        word(out, encoded!("hint"), hint);
    }
    write_block(out, inspection.block, inspection.time);
    write_ban(out, inspection.ban);
    out.raw(encoded!("limits"));
    let limits = policy.limits().iter().zip(&inspection.limits);
    out.array(limits.clone().count());
    limits.for_each(|(limit, state)| write_limit_state(out, limit, state, has_ids));
    out.raw(encoded!("reservations"));
    out.array(inspection.reservations.len());
    for reservation in &inspection.reservations {
        out.map(2 + usize::from(has_ids));
        if has_ids {
            display(out, encoded!("reservation_id"), reservation.id);
        }
        count(out, encoded!("cost"), reservation.cost);
        time(out, encoded!("acts_after_us"), Some(reservation.acts_after));
    }
    if let Some(held) = inspection.held {
        out.raw(encoded!("held"));
        out.map(2);
        count(out, encoded!("remaining"), held.remaining);
        time(out, encoded!("ends_after_us"), Some(held.ends_after));
    }
    count(out, encoded!("time_us"), inspection.time.as_micros());
}

fn write_limit_state(out: &mut ReplyBuffer, limit: &Limit, state: &LimitInspection, has_ids: bool) {
    out.map(6);
    display(out, encoded!("limit"), limit);
    count(out, encoded!("capacity"), state.capacity);
    count(out, encoded!("used"), state.used);
    count(out, encoded!("remaining"), state.remaining);
    time(out, encoded!("reset_after_us"), Some(state.reset_after));
    out.raw(encoded!("leases"));
    out.array(state.leases.len());
    for lease in &state.leases {
        out.map(2 + usize::from(has_ids));
        if has_ids {
            display(out, encoded!("lease_id"), lease.id);
        }
        count(out, encoded!("cost"), lease.cost);
        time(out, encoded!("ends_after_us"), Some(lease.ends_after));
    }
}

// Names have types with their lengths, so that the compiler copies them without a call.

#[inline]
fn flag<const N: usize>(out: &mut ReplyBuffer, name: &[u8; N], value: bool) {
    out.raw(name);
    out.boolean(value);
}

#[inline]
fn word<const N: usize>(out: &mut ReplyBuffer, name: &[u8; N], word: &str) {
    out.raw(name);
    out.text(word);
}

fn display(out: &mut ReplyBuffer, name: &[u8], value: impl Display) {
    out.raw(name);
    out.display(value);
}

#[inline]
fn count<const N: usize>(out: &mut ReplyBuffer, name: &[u8; N], count: u64) {
    out.raw(name);
    out.count(count);
}

#[inline]
fn time<const N: usize>(out: &mut ReplyBuffer, name: &[u8; N], time: Option<Micros>) {
    out.raw(name);
    match time {
        Some(time) => out.count(time.get()),
        None => out.raw(ABSENT),
    }
}

/// A count that differs between decisions with the same text: see [`template`].
fn varying<const N: usize>(out: &mut ReplyBuffer, name: &[u8; N], count: u64) {
    out.raw(name);
    out.varying(count);
}

fn retry_after(out: &mut ReplyBuffer, retry_after: Option<Micros>, never: bool) {
    out.raw(encoded!("retry_after_us"));
    match retry_after {
        Some(retry_after) => out.varying(retry_after.get()),
        None => out.raw(if never { NEVER } else { ABSENT }),
    }
}

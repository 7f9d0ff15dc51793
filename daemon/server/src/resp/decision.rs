//! Decisions as replies: the names are those of the JSON, but for times, which are whole
//! microseconds and say so; −1 is what is absent, −2 never.

use std::fmt::Display;

use tollgate::{
    Answer, Block, Decision, Inspection, Limit, LimitDecision, LimitInspection, Micros, Policy,
};

use super::out::Out;

/// How an answer says whether anything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A decision.
    Decision,
    /// What a verb that does not decide has done.
    Change,
}

/// What is absent, and what never comes.
const ABSENT: i64 = -1;
const NEVER: i64 = -2;

/// The five integers of `CL.THROTTLE`: limited, limit, remaining, and in whole seconds, rounded up,
/// when to come again, or −1 if that is now or never, and when the limit is whole again.
#[inline]
pub(super) fn write_throttle(out: &mut Out, policy: &Policy, it: &Decision) {
    // A decision that no limit made has no capacity; the client has said what the limit is.
    let capacity = policy.limits().first().map_or(it.capacity, Limit::capacity);
    let retry_after = it.retry_after.filter(|_| !it.allowed);
    out.raw(if it.allowed { b"*5\r\n:0\r\n" } else { b"*5\r\n:1\r\n" });
    out.count(capacity);
    out.count(it.remaining);
    match retry_after {
        None => out.raw(b":-1\r\n"),
        Some(retry_after) => out.count(retry_after.secs_rounded_up()),
    }
    out.count(it.reset_after.unwrap_or_default().secs_rounded_up());
}

pub(super) fn write(out: &mut Out, policy: &Policy, it: &Decision, shape: Shape) {
    let ids = usize::from(it.lease.is_some()) + usize::from(it.reservation.is_some());
    out.map(15 + ids + usize::from(shape == Shape::Change));
    flag(out, "allowed", it.allowed);
    word(out, "reason", it.reason.as_str());
    word(out, "policy", policy.name());
    count(out, "capacity", it.capacity);
    count(out, "remaining", it.remaining);
    retry_after(out, it.retry_after, it.never);
    flag(out, "never", it.never);
    time(out, "reset_after_us", it.reset_after);
    time(out, "delay_us", Some(it.delay));
    count(out, "granted", it.granted);
    word(out, "source", it.source.as_str());
    flag(out, "degraded", it.degraded);
    flag(out, "replayed", it.replayed);
    count(out, "time_us", it.time.as_micros());
    if shape == Shape::Change {
        flag(out, "changed", it.changed);
    }
    if let Some(lease) = it.lease {
        shown(out, "lease_id", lease);
    }
    if let Some(reservation) = it.reservation {
        shown(out, "reservation_id", reservation);
    }
    out.text("limits");
    let limits = policy.limits().iter().zip(it.each_limit());
    out.array(limits.clone().count());
    limits.for_each(|(limit, said)| write_limit(out, limit, &said, it.shadow));
}

fn write_limit(out: &mut Out, limit: &Limit, said: &LimitDecision, is_shadow: bool) {
    out.map(7 + usize::from(is_shadow));
    shown(out, "limit", limit);
    flag(out, "allowed", said.allowed);
    flag(out, "binding", said.binding);
    count(out, "capacity", said.capacity);
    count(out, "remaining", said.remaining);
    retry_after(out, said.retry_after, said.never);
    time(out, "reset_after_us", Some(said.reset_after));
    if is_shadow {
        flag(out, "shadow", true);
    }
}

/// The decisions of several checks, in order.
pub(super) fn write_several<'p>(
    out: &mut Out,
    policies: impl Iterator<Item = &'p Policy>,
    answer: &Answer,
    shape: Shape,
) {
    out.map(4);
    flag(out, "allowed", answer.allowed());
    retry_after(out, answer.retry_after(), answer.never());
    flag(out, "never", answer.never());
    out.text("decisions");
    out.array(answer.decisions.len());
    policies
        .zip(&answer.decisions)
        .for_each(|(policy, decision)| write(out, policy, decision, shape));
}

/// What is kept of a key.
pub(super) fn write_inspection(out: &mut Out, policy: &Policy, it: &Inspection) {
    out.map(5);
    word(out, "policy", policy.name());
    out.text("block");
    match it.block {
        None => out.null(),
        Some(block) => {
            out.map(1);
            let ends_after = match block {
                Block::Forever => None,
                Block::Until(end) => Some(end.duration_since(it.time)),
            };
            time(out, "ends_after_us", ends_after);
        }
    }
    out.text("limits");
    let limits = policy.limits().iter().zip(&it.limits);
    out.array(limits.clone().count());
    limits.for_each(|(limit, held)| write_held(out, limit, held));
    out.text("reservations");
    out.array(it.reservations.len());
    for reservation in &it.reservations {
        out.map(3);
        shown(out, "reservation_id", reservation.id);
        count(out, "cost", reservation.cost);
        time(out, "acts_after_us", Some(reservation.acts_after));
    }
    count(out, "time_us", it.time.as_micros());
}

fn write_held(out: &mut Out, limit: &Limit, held: &LimitInspection) {
    out.map(6);
    shown(out, "limit", limit);
    count(out, "capacity", held.capacity);
    count(out, "used", held.used);
    count(out, "remaining", held.remaining);
    time(out, "reset_after_us", Some(held.reset_after));
    out.text("leases");
    out.array(held.leases.len());
    for lease in &held.leases {
        out.map(3);
        shown(out, "lease_id", lease.id);
        count(out, "cost", lease.cost);
        time(out, "ends_after_us", Some(lease.ends_after));
    }
}

fn flag(out: &mut Out, name: &str, is: bool) {
    out.text(name);
    out.boolean(is);
}

fn word(out: &mut Out, name: &str, word: &str) {
    out.text(name);
    out.text(word);
}

fn shown(out: &mut Out, name: &str, it: impl Display) {
    out.text(name);
    out.display(it);
}

fn count(out: &mut Out, name: &str, count: u64) {
    out.text(name);
    out.count(count);
}

fn time(out: &mut Out, name: &str, time: Option<Micros>) {
    out.text(name);
    match time {
        Some(time) => out.count(time.get()),
        None => out.integer(ABSENT),
    }
}

fn retry_after(out: &mut Out, retry_after: Option<Micros>, never: bool) {
    out.text("retry_after_us");
    match retry_after {
        Some(retry_after) => out.count(retry_after.get()),
        None => out.integer(if never { NEVER } else { ABSENT }),
    }
}

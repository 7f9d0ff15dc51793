//! The state of a key as bytes. A limit's kind says what its state looks like, so nothing is
//! written twice.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::policy::{limit, put_limit};
use super::{Bytes, Malformed, ensure, put_bytes, put_count};
use crate::forms::{MAX_DETACHED_STATES, Stray};
use crate::key_state::{KeyState, MAX_RESERVATIONS, Reservation};
use crate::leases::{Held, Lease};
use crate::limit::{Limit, Rule};
use crate::log::{Entries, Entry};
use crate::meter::{Level, Meter};
use crate::notation::parse_limits;
use crate::policy::{MAX_LIMITS, Policy};
use crate::request::Id;
use crate::state::LimitState;
use crate::weighted::Counts;
use crate::window::Open;

impl KeyState {
    /// Appends it as bytes, without the policy that it is of. State of none is written as nothing.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Some(policy) = self.policy() else { return };
        let (strays, reservations) = (self.strays(), self.all_reservations());
        let more = !strays.is_empty() || !reservations.is_empty();
        out.push(u8::from(more));
        for state in self.limits() {
            out.push(u8::from(*state != LimitState::Untouched));
            put_state(out, state);
        }
        if more {
            put_count(out, strays.len());
            strays.iter().for_each(|stray| put_stray(out, stray));
            put_count(out, reservations.len());
            reservations.iter().for_each(|reservation| put_reservation(out, policy, reservation));
        }
    }

    /// Reads what [`KeyState::encode`] wrote of a state of `policy`.
    ///
    /// # Errors
    /// The bytes are none, or such as no charge makes.
    pub fn decode(policy: &Policy, from: &mut Bytes<'_>) -> Result<KeyState, Malformed> {
        let more = from.flag()?;
        let limits = policy.limits().iter().map(|limit| match from.flag()? {
            false => Ok(LimitState::Untouched),
            true => state(limit, from),
        });
        let limits = limits.collect::<Result<Vec<_>, _>>()?;
        let (mut strays, mut reservations) = (Vec::new(), Vec::new());
        if more {
            for _ in 0..from.count(4)? {
                strays.push(stray(policy, &strays, from)?);
            }
            for _ in 0..from.count(36)? {
                reservations.push(reservation(policy, &reservations, from)?);
            }
            ensure(strays.len() <= MAX_DETACHED_STATES, "more states aside than a key has")?;
            ensure(strays.len() + reservations.len() > 0, "more to come, and nothing comes")?;
            let in_order = reservations.is_sorted_by_key(|reservation| reservation.acts_at);
            ensure(in_order, "reservations that are not in the order in which they act")?;
            ensure(reservations.len() <= MAX_RESERVATIONS, "more reservations than a key has")?;
        }
        Ok(KeyState::of_parts(policy, limits, strays, reservations))
    }
}

fn put_stray(out: &mut Vec<u8>, it: &Stray) {
    put_limit(out, &it.limit);
    // A rank is below 16, the most limits of a policy.
    out.push(u8::try_from(it.rank).unwrap_or(u8::MAX));
    put_state(out, &it.state);
}

/// One more state aside: of no limit that has its state elsewhere.
fn stray(policy: &Policy, others: &[Stray], from: &mut Bytes<'_>) -> Result<Stray, Malformed> {
    let (limit, rank) = (limit(from)?, usize::from(from.u8()?));
    ensure(rank < MAX_LIMITS, "a rank that no limit of a policy has")?;
    let state = state(&limit, from)?;
    let stray = Stray { limit, rank, state };
    let twice = |other: &Stray| {
        other.is(limit.identity(), rank) && (!limit.keeps_forms() || other.limit == limit)
    };
    ensure(!stray.is_taken_by(policy) && !others.iter().any(twice), "two states of one limit")?;
    Ok(stray)
}

fn put_reservation(out: &mut Vec<u8>, policy: &Policy, it: &Reservation) {
    out.extend_from_slice(&it.id.as_u128().to_le_bytes());
    put_all(out, [it.cost, it.acts_at]);
    let limits = if it.is_of(policy) { String::new() } else { it.policy.to_string() };
    put_bytes(out, limits.as_bytes());
    it.marks.iter().for_each(|mark| put_all(out, [mark.at, mark.used]));
}

fn reservation(
    policy: &Policy,
    others: &[Reservation],
    from: &mut Bytes<'_>,
) -> Result<Reservation, Malformed> {
    let id = Id::from_u128(from.u128()?);
    let (cost, acts_at) = (from.u64()?, from.u64()?);
    let policy = made_under(policy, others, from.text()?)?;
    let mut last = 0;
    let marks = policy.limits().iter().map(|limit| {
        let Rule::Meter(meter) = &limit.rule else {
            return Err(Malformed("a reservation where none can be made"));
        };
        let mark = level(meter, from)?;
        ensure((1..=limit.capacity()).contains(&cost), "a reservation that never passes")?;
        last = last.max(meter.recovers_at(&mark));
        Ok(mark)
    });
    let marks = marks.collect::<Result<Box<[_]>, _>>()?;
    ensure(acts_at <= last, "a reservation that acts after its charge has gone")?;
    Ok(Reservation { id, cost, acts_at, policy, marks })
}

/// The policy of these limits, which another reservation may have been made under as well.
fn made_under(policy: &Policy, others: &[Reservation], limits: &str) -> Result<Policy, Malformed> {
    if limits.is_empty() {
        return Ok(policy.clone());
    }
    if let Some(value) =
        others.last().filter(|other| !other.is_of(policy) && other.policy.to_string() == limits)
    {
        return Ok(value.policy.clone());
    }
    let form = parse_limits(limits).ok().and_then(|limits| policy.with_limits(limits));
    let form = form.filter(|form| form.to_string() == limits && form.limits() != policy.limits());
    form.ok_or(Malformed("a reservation under limits that cannot be"))
}

fn put_state(out: &mut Vec<u8>, state: &LimitState) {
    match state {
        LimitState::Untouched => {}
        LimitState::Meter(meter) => put_all(out, [meter.at, meter.used]),
        LimitState::Window(window) => put_all(out, [window.end, window.used]),
        LimitState::Weighted(weighted) => {
            put_all(out, [weighted.start, weighted.current, weighted.previous])
        }
        LimitState::Log(log) => {
            put_count(out, log.entries.len());
            let mut before = log.base;
            for Entry { stamp, sum } in &log.entries {
                put_all(out, [*stamp, sum - before]);
                before = *sum;
            }
        }
        LimitState::Leases(leases) => {
            put_all(out, [leases.at]);
            put_count(out, leases.leases.len());
            for Lease { id, cost, end } in &leases.leases {
                out.extend_from_slice(&id.as_u128().to_le_bytes());
                put_all(out, [*cost, *end]);
            }
        }
    }
}

fn state(limit: &Limit, from: &mut Bytes<'_>) -> Result<LimitState, Malformed> {
    Ok(match &limit.rule {
        Rule::Meter(rule) => LimitState::Meter(level(rule, from)?),
        Rule::Window(rule) => {
            let open = Open { end: from.u64()?, used: from.u64()? };
            ensure(rule.can_be(&open), "a window that cannot be")?;
            LimitState::Window(open)
        }
        Rule::Weighted(rule) => {
            let (start, current, previous) = (from.u64()?, from.u64()?, from.u64()?);
            let counts = Counts { start, current, previous };
            ensure(rule.can_be(&counts), "counts that cannot be")?;
            LimitState::Weighted(Box::new(counts))
        }
        Rule::Log(rule) => {
            let entry = entries(from)?;
            ensure(rule.can_be(&entry), "a log that cannot be")?;
            LimitState::Log(Box::new(entry))
        }
        Rule::Leases(_) => {
            let value = held(from)?;
            ensure(value.can_be(), "leases that cannot be")?;
            LimitState::Leases(Box::new(value))
        }
    })
}

fn level(meter: &Meter, from: &mut Bytes<'_>) -> Result<Level, Malformed> {
    let level = Level { at: from.u64()?, used: from.u64()? };
    ensure(meter.can_be(&level), "a level that cannot be")?;
    Ok(level)
}

fn entries(from: &mut Bytes<'_>) -> Result<Entries, Malformed> {
    let count = from.count(16)?;
    let mut log = Entries { entries: VecDeque::with_capacity(count), base: 0 };
    let mut sum: u64 = 0;
    for _ in 0..count {
        let (stamp, cost) = (from.u64()?, from.u64()?);
        sum = sum.checked_add(cost).ok_or(Malformed("a log whose costs have no sum"))?;
        log.entries.push_back(Entry { stamp, sum });
    }
    Ok(log)
}

fn held(from: &mut Bytes<'_>) -> Result<Held, Malformed> {
    let (at, count) = (from.u64()?, from.count(32)?);
    let mut held = Held { at, leases: Vec::with_capacity(count), total: 0 };
    for _ in 0..count {
        let id = Id::from_u128(from.u128()?);
        let (cost, end) = (from.u64()?, from.u64()?);
        let total = held.total.checked_add(cost);
        held.total = total.ok_or(Malformed("leases whose costs have no sum"))?;
        held.leases.push(Lease { id, cost, end });
    }
    Ok(held)
}

fn put_all<const N: usize>(out: &mut Vec<u8>, all: [u64; N]) {
    all.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes()));
}

//! The state of a key as bytes. A limit's kind says what its state looks like, so nothing is
//! written twice.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::policy::{limit, put_limit};
use super::{Bytes, Malformed, ensure, put_bytes, put_count};
use crate::forms::{MOST_STRAYS, Stray};
use crate::key_state::{KeyState, MOST_RESERVATIONS, Reservation};
use crate::leases::{Held, Lease};
use crate::limit::{Limit, Rule};
use crate::log::{Entries, Entry};
use crate::meter::{Level, Meter};
use crate::notation::parse_limits;
use crate::policy::{MOST_LIMITS, Policy};
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
            strays.iter().for_each(|it| put_stray(out, it));
            put_count(out, reservations.len());
            reservations.iter().for_each(|it| put_reservation(out, policy, it));
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
            ensure(strays.len() <= MOST_STRAYS, "more states aside than a key has")?;
            ensure(strays.len() + reservations.len() > 0, "more to come, and nothing comes")?;
            let in_order = reservations.is_sorted_by_key(|it| it.acts_at);
            ensure(in_order, "reservations that are not in the order in which they act")?;
            ensure(reservations.len() <= MOST_RESERVATIONS, "more reservations than a key has")?;
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
    ensure(rank < MOST_LIMITS, "a rank that no limit of a policy has")?;
    let state = state(&limit, from)?;
    let it = Stray { limit, rank, state };
    let twice = |other: &Stray| {
        other.is(limit.identity(), rank) && (!limit.keeps_forms() || other.limit == limit)
    };
    ensure(!it.is_taken_by(policy) && !others.iter().any(twice), "two states of one limit")?;
    Ok(it)
}

fn put_reservation(out: &mut Vec<u8>, policy: &Policy, it: &Reservation) {
    out.extend_from_slice(&it.id.as_u128().to_le_bytes());
    put_all(out, [it.cost, it.acts_at]);
    let limits = if it.is_of(policy) { String::new() } else { it.policy.to_string() };
    put_bytes(out, limits.as_bytes());
    it.marks.iter().for_each(|it| put_all(out, [it.at, it.used]));
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
    if let Some(it) =
        others.last().filter(|it| !it.is_of(policy) && it.policy.to_string() == limits)
    {
        return Ok(it.policy.clone());
    }
    let form = parse_limits(limits).ok().and_then(|it| policy.with_limits(it));
    let form = form.filter(|it| it.to_string() == limits && it.limits() != policy.limits());
    form.ok_or(Malformed("a reservation under limits that cannot be"))
}

fn put_state(out: &mut Vec<u8>, state: &LimitState) {
    match state {
        LimitState::Untouched => {}
        LimitState::Meter(it) => put_all(out, [it.at, it.used]),
        LimitState::Window(it) => put_all(out, [it.end, it.used]),
        LimitState::Weighted(it) => put_all(out, [it.start, it.current, it.previous]),
        LimitState::Log(it) => {
            put_count(out, it.entries.len());
            let mut before = it.base;
            for Entry { stamp, sum } in &it.entries {
                put_all(out, [*stamp, sum - before]);
                before = *sum;
            }
        }
        LimitState::Leases(it) => {
            put_all(out, [it.at]);
            put_count(out, it.leases.len());
            for Lease { id, cost, end } in &it.leases {
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
            let it = Open { end: from.u64()?, used: from.u64()? };
            ensure(rule.can_be(&it), "a window that cannot be")?;
            LimitState::Window(it)
        }
        Rule::Weighted(rule) => {
            let (start, current, previous) = (from.u64()?, from.u64()?, from.u64()?);
            let it = Counts { start, current, previous };
            ensure(rule.can_be(&it), "counts that cannot be")?;
            LimitState::Weighted(Box::new(it))
        }
        Rule::Log(rule) => {
            let it = entries(from)?;
            ensure(rule.can_be(&it), "a log that cannot be")?;
            LimitState::Log(Box::new(it))
        }
        Rule::Leases(_) => {
            let it = held(from)?;
            ensure(it.can_be(), "leases that cannot be")?;
            LimitState::Leases(Box::new(it))
        }
    })
}

fn level(meter: &Meter, from: &mut Bytes<'_>) -> Result<Level, Malformed> {
    let it = Level { at: from.u64()?, used: from.u64()? };
    ensure(meter.can_be(&it), "a level that cannot be")?;
    Ok(it)
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
    all.iter().for_each(|it| out.extend_from_slice(&it.to_le_bytes()));
}

//! Encoding of the state of a key. The policy determines the layout, so it is needed to decode.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::bytes::{Bytes, Malformed, ensure, put_bytes, put_count};
use super::{limit, put_limit};
use crate::algorithm::{
    Algorithm, FixedWindowState, Lease, LeaseSet, LimitState, LogCoverage, LogEntry,
    SlidingLogState, SlidingWindowState, TokenBucketState,
};
use crate::id::Id;
use crate::key::{DetachedState, KeyState, MAX_DETACHED_STATES, MAX_RESERVATIONS, Reservation};
use crate::limit::Limit;
use crate::notation::parse_limits;
use crate::policy::{BanState, MAX_DENIALS, MAX_LIMITS, Policy};
use crate::time::Timestamp;

/// The bits of a form: detached states or reservations follow; the state of a ban follows.
const MORE: u8 = 1;
const BAN: u8 = 2;

impl KeyState {
    /// Appends the state without its policy. The state of an unknown key is written as nothing.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Some(policy) = self.policy() else { return };
        let (detached, reservations) = (self.detached(), self.all_reservations());
        let has_more = !detached.is_empty() || !reservations.is_empty();
        let has_ban = self.ban() != BanState::Clear;
        out.push(if has_more { MORE } else { 0 } | if has_ban { BAN } else { 0 });
        for state in self.limits() {
            out.push(u8::from(*state != LimitState::Untouched));
            put_state(out, state);
        }
        match self.ban() {
            BanState::Clear => {}
            BanState::Counting { end, denials } => put_all(out, [end.as_micros(), denials]),
            BanState::Banned { end } => put_all(out, [end.as_micros(), 0]),
        }
        if has_more {
            put_count(out, detached.len());
            detached.iter().for_each(|detached| put_detached(out, detached));
            put_count(out, reservations.len());
            reservations.iter().for_each(|reservation| put_reservation(out, policy, reservation));
        }
    }

    /// Decodes the output of [`KeyState::encode`] for a state of `policy`.
    ///
    /// # Errors
    /// The bytes are not a state, or a state that no charge can produce.
    pub fn decode(policy: &Policy, from: &mut Bytes<'_>) -> Result<KeyState, Malformed> {
        let form = from.u8()?;
        ensure(form <= MORE | BAN, "the form of a state is unknown")?;
        let limits = policy.limits().iter().map(|limit| match from.flag()? {
            false => Ok(LimitState::Untouched),
            true => state(limit, from),
        });
        let limits = limits.collect::<Result<Vec<_>, _>>()?;
        let (mut detached, mut reservations) = (Vec::new(), Vec::new());
        let ban = if form & BAN == 0 { BanState::Clear } else { ban(from)? };
        if form & MORE != 0 {
            for _ in 0..from.count(4)? {
                detached.push(detached_state(policy, &detached, from)?);
            }
            for _ in 0..from.count(36)? {
                reservations.push(reservation(policy, &reservations, from)?);
            }
            ensure(detached.len() <= MAX_DETACHED_STATES, "a key has too many detached states")?;
            ensure(detached.len() + reservations.len() > 0, "announced states are missing")?;
            let in_order = reservations.is_sorted_by_key(|reservation| reservation.acts_at);
            ensure(in_order, "reservations are not in the order of their times")?;
            ensure(reservations.len() <= MAX_RESERVATIONS, "a key has too many reservations")?;
        }
        let mut state = KeyState::from_parts(policy, limits, detached, reservations);
        state.set_ban(policy, ban);
        Ok(state)
    }
}

fn ban(from: &mut Bytes<'_>) -> Result<BanState, Malformed> {
    let (end, denials) = (from.u64()?, from.u64()?);
    let is_possible = end <= Timestamp::MAX.as_micros() && denials <= MAX_DENIALS;
    ensure(is_possible, "no denial can produce the state of a ban")?;
    let end = Timestamp::from_micros(end);
    Ok(if denials > 0 { BanState::Counting { end, denials } } else { BanState::Banned { end } })
}

#[expect(clippy::expect_used, reason = "a policy has at most 16 limits")]
fn put_detached(out: &mut Vec<u8>, detached: &DetachedState) {
    put_limit(out, &detached.limit);
    out.push(u8::try_from(detached.rank).expect("a rank below 16"));
    put_state(out, &detached.state);
}

/// Decodes a detached state. Its limit must not have a state elsewhere.
fn detached_state(
    policy: &Policy,
    others: &[DetachedState],
    from: &mut Bytes<'_>,
) -> Result<DetachedState, Malformed> {
    let (limit, rank) = (limit(from)?, usize::from(from.u8()?));
    ensure(rank < MAX_LIMITS, "a rank is too large")?;
    let state = state(&limit, from)?;
    let detached = DetachedState { limit, rank, state };
    let is_same = |other: &DetachedState| {
        let is_version = other.has_identity(limit.identity(), rank);
        is_version && (!limit.has_state_per_version() || other.limit == limit)
    };
    let is_only = !detached.is_continued_by(policy) && !others.iter().any(is_same);
    ensure(is_only, "a limit has two states")?;
    Ok(detached)
}

fn put_reservation(out: &mut Vec<u8>, policy: &Policy, reservation: &Reservation) {
    out.extend_from_slice(&reservation.id.as_u128().to_le_bytes());
    put_all(out, [reservation.cost, reservation.acts_at]);
    let is_of_policy = reservation.is_of(policy);
    let limits = if is_of_policy { String::new() } else { reservation.policy.to_string() };
    put_bytes(out, limits.as_bytes());
    reservation.marks.iter().for_each(|mark| put_all(out, [mark.at, mark.used]));
}

fn reservation(
    policy: &Policy,
    others: &[Reservation],
    from: &mut Bytes<'_>,
) -> Result<Reservation, Malformed> {
    let id = Id::from_u128(from.u128()?);
    let (cost, acts_at) = (from.u64()?, from.u64()?);
    let policy = reservation_policy(policy, others, from.text()?)?;
    let mut last = 0;
    let marks = policy.limits().iter().map(|limit| {
        let Algorithm::TokenBucket(bucket) = &limit.algorithm else {
            return Err(Malformed("a reservation is under a limit that takes none"));
        };
        let mark = TokenBucketState { at: from.u64()?, used: from.u64()? };
        ensure(bucket.can_hold(&mark), IMPOSSIBLE)?;
        ensure((1..=limit.capacity()).contains(&cost), "a reservation exceeds the capacity")?;
        last = last.max(bucket.recovers_at(&mark));
        Ok(mark)
    });
    let marks = marks.collect::<Result<Box<[_]>, _>>()?;
    ensure(acts_at <= last, "a reservation acts after its charge has recovered")?;
    Ok(Reservation { id, cost, acts_at, policy, marks })
}

/// The policy with these limits, shared with the previous reservation if it was made under them.
fn reservation_policy(
    policy: &Policy,
    others: &[Reservation],
    text: &str,
) -> Result<Policy, Malformed> {
    if text.is_empty() {
        return Ok(policy.clone());
    }
    let previous = others.last().filter(|other| !other.is_of(policy));
    if let Some(previous) = previous.filter(|previous| previous.policy.to_string() == text) {
        return Ok(previous.policy.clone());
    }
    let limits = parse_limits(text).ok();
    let version = limits.and_then(|limits| policy.with_limits(limits).ok());
    version
        .filter(|version| version.to_string() == text && version.limits() != policy.limits())
        .ok_or(Malformed("the limits of a reservation are invalid"))
}

fn put_state(out: &mut Vec<u8>, state: &LimitState) {
    match state {
        LimitState::Untouched => {}
        LimitState::TokenBucket(level) => put_all(out, [level.at, level.used]),
        LimitState::FixedWindow(window) => put_all(out, [window.end, window.used]),
        LimitState::SlidingWindow(counts) => {
            put_all(out, [counts.start, counts.current, counts.previous]);
        }
        LimitState::SlidingLog(log) => {
            put_count(out, log.entries.len());
            let mut before = log.base;
            for LogEntry { stamp, sum } in &log.entries {
                put_all(out, [*stamp, sum - before]);
                before = *sum;
            }
        }
        LimitState::Concurrency(set) => {
            put_all(out, [set.at]);
            put_count(out, set.leases.len());
            for Lease { id, cost, end } in &set.leases {
                out.extend_from_slice(&id.as_u128().to_le_bytes());
                put_all(out, [*cost, *end]);
            }
        }
    }
}

const IMPOSSIBLE: &str = "no charge can produce the state of a limit";

fn state(limit: &Limit, from: &mut Bytes<'_>) -> Result<LimitState, Malformed> {
    let state = match &limit.algorithm {
        Algorithm::TokenBucket(_) => {
            LimitState::TokenBucket(TokenBucketState { at: from.u64()?, used: from.u64()? })
        }
        Algorithm::FixedWindow(_) => {
            LimitState::FixedWindow(FixedWindowState { end: from.u64()?, used: from.u64()? })
        }
        Algorithm::SlidingWindow(_) => {
            let (start, current, previous) = (from.u64()?, from.u64()?, from.u64()?);
            let counts = SlidingWindowState { start, current, previous };
            LimitState::SlidingWindow(Box::new(counts))
        }
        Algorithm::SlidingLog(_) => LimitState::SlidingLog(Box::new(log(from)?)),
        Algorithm::Concurrency(_) => LimitState::Concurrency(Box::new(lease_set(from)?)),
    };
    ensure(limit.can_hold(&state, LogCoverage::Complete), IMPOSSIBLE)?;
    Ok(state)
}

fn log(from: &mut Bytes<'_>) -> Result<SlidingLogState, Malformed> {
    let count = from.count(16)?;
    let mut log = SlidingLogState { entries: VecDeque::with_capacity(count), base: 0 };
    let mut sum: u64 = 0;
    for _ in 0..count {
        let (stamp, cost) = (from.u64()?, from.u64()?);
        sum = sum.checked_add(cost).ok_or(Malformed("the sum of a log overflows"))?;
        log.entries.push_back(LogEntry { stamp, sum });
    }
    Ok(log)
}

fn lease_set(from: &mut Bytes<'_>) -> Result<LeaseSet, Malformed> {
    let (at, count) = (from.u64()?, from.count(32)?);
    let mut set = LeaseSet { at, leases: Vec::with_capacity(count), total: 0 };
    for _ in 0..count {
        let id = Id::from_u128(from.u128()?);
        let (cost, end) = (from.u64()?, from.u64()?);
        let total = set.total.checked_add(cost);
        set.total = total.ok_or(Malformed("the sum of the leases overflows"))?;
        set.leases.push(Lease { id, cost, end });
    }
    Ok(set)
}

fn put_all<const N: usize>(out: &mut Vec<u8>, all: [u64; N]) {
    all.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

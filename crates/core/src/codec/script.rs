//! State as a script keeps it, and policies as it computes with them.
//!
//! A number is 7 bytes, little-endian, below 2^53; ids are 16 bytes, big-endian.
//!
//! ```text
//! key         head, block, a state for each limit, states aside
//! head        167: u8, schema: u8, flags: u8 (1 block, 2 states aside), length: u16, form
//! form        of each limit length: u8, kind: u8 (16 added if denied requests are counted), then
//!             numbers of 7 bits a byte, low ones first: capacity, window in ms (concurrent: the
//!             lease), and by kind: units per token, units per tick, tick (token bucket, queue);
//!             origin in ms (fixed); tick (sliding); precision in ms, strict (sliding by)
//! block       its end and 1, or 0 for ever: number
//! state       by kind two or three numbers, as in [`super`]; log: base: number, count: u32, of
//!             each stamp, sum: numbers, or 2^31 + count: u32, gone: u32, the oldest and the newest
//!             stamp and sum: numbers; leases: at: number, total: u32, count: u32, of each id,
//!             cost: u16, end: number. Nothing used is all zeros
//! aside       count: u8, of each rank: u8, length: u8, the limit's form, state
//! argument    plain: u8 (0 no, 1 yes, 2 if it is the only check), shadow: u8, limits: u8, log
//!             entries: number, length: u16, head, of each limit kind: u8, counts denied: u8,
//!             capacity and five more numbers
//! reservation cost, acts at: numbers, length: u16, form, of each limit a level
//! ```

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Bytes, Malformed, ensure};
use crate::decide::Block;
use crate::forms::Stray;
use crate::key_state::{KeyState, Reservation};
use crate::leases::{Held, Lease, MAX_LEASES};
use crate::limit::{Kind, Limit, Rule, Spec};
use crate::log::{Entries, Entry};
use crate::meter::Level;
use crate::policy::Policy;
use crate::request::Id;
use crate::state::LimitState;
use crate::time::{Micros, Timestamp};
use crate::weighted::Counts;
use crate::window::Open;

const MAGIC: u8 = 167;
/// The version of what a key holds. One that is not known is left alone.
const SCHEMA: u8 = 1;
/// Added to the count of a log whose row is a string of its own.
const LONG: u32 = 1 << 31;
const BLOCKED: u8 = 1;
const ASIDE: u8 = 2;

/// What a script is told of a policy, written once when the policy is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    argument: Box<[u8]>,
    /// Where in it the limits stand as a key says whose state it holds.
    form: Range<usize>,
}

/// How many bytes of an argument stand before the form, and are of each limit after it.
const BEFORE_FORM: usize = 17;
const OF_LIMIT: usize = 44;
/// More bytes than most limits' forms have.
const USUAL_FORM: usize = 24;

impl Script {
    pub(crate) fn of(limits: &[Limit], is_shadow: bool, log_entries: usize) -> Self {
        let plain = match limits {
            _ if is_shadow || !limits.iter().all(is_constant) => 0,
            _ if !limits.iter().any(Limit::counts_denied) => 1,
            // What counts denials is charged apart from what does not.
            [_] => 2,
            _ => 0,
        };
        let count = u8::try_from(limits.len()).unwrap_or(u8::MAX);
        let mut form = Vec::with_capacity(USUAL_FORM * limits.len());
        limits.iter().for_each(|limit| put_form(&mut form, limit));
        let mut out = Vec::with_capacity(BEFORE_FORM + form.len() + OF_LIMIT * limits.len());
        out.extend([plain, u8::from(is_shadow), count]);
        put_number(&mut out, u64::try_from(log_entries).unwrap_or(u64::MAX));
        let head = [MAGIC, SCHEMA, 0];
        // The length of the form is of the head too.
        put_u16(&mut out, head.len() + 2 + form.len());
        out.extend(head);
        put_u16(&mut out, form.len());
        let begin = out.len();
        out.extend(form);
        let form = begin..out.len();
        for limit in limits {
            out.extend([kind_of(limit), u8::from(limit.counts_denied())]);
            put_number(&mut out, limit.capacity());
            numbers_of(limit).into_iter().for_each(|x| put_number(&mut out, x));
        }
        Script { argument: out.into_boxed_slice(), form }
    }
}

impl Policy {
    /// Its limits, as a key says whose state it holds.
    #[must_use]
    pub fn script_form(&self) -> &[u8] {
        let Script { argument, form } = self.script();
        &argument[form.clone()]
    }

    /// The policy of the limits of a form, and else as this one is.
    ///
    /// # Errors
    /// The form is none.
    pub fn in_script_form(&self, form: &[u8]) -> Result<Policy, Malformed> {
        if form == self.script_form() { Ok(self.clone()) } else { other(self, form) }
    }

    /// What a script is told of it.
    #[must_use]
    pub fn script_argument(&self) -> &[u8] {
        &self.script().argument
    }
}

fn is_constant(limit: &Limit) -> bool {
    matches!(limit.rule, Rule::Meter(_) | Rule::Window(_) | Rule::Weighted(_))
}

fn numbers_of(limit: &Limit) -> [u64; 5] {
    match &limit.rule {
        Rule::Meter(meter) => meter.numbers(),
        Rule::Window(window) => window.numbers(),
        Rule::Weighted(weighted) => weighted.numbers(),
        Rule::Log(log) => log.numbers(),
        Rule::Leases(leases) => leases.numbers(),
    }
}

fn kind_of(limit: &Limit) -> u8 {
    match limit.spec().kind {
        Kind::TokenBucket { .. } => 0,
        Kind::Fixed { .. } => 1,
        Kind::FixedFromFirst => 2,
        Kind::Log => 3,
        Kind::Sliding => 4,
        Kind::SlidingBy { .. } => 5,
        Kind::Queue { .. } => 6,
        Kind::Concurrent => 7,
    }
}

/// Appends the form of a limit, with its length before it.
fn put_form(out: &mut Vec<u8>, limit: &Limit) {
    let place = out.len();
    out.push(0);
    put_limit(out, limit);
    out[place] = u8::try_from(out.len() - place - 1).unwrap_or(u8::MAX);
}

fn put_limit(out: &mut Vec<u8>, limit: &Limit) {
    let counted = if limit.counts_denied() { 16 } else { 0 };
    out.push(kind_of(limit) + counted);
    let spec = limit.spec();
    put_varint(out, limit.capacity());
    put_varint(out, spec.window.get() / 1_000);
    let numbers = numbers_of(limit);
    match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            numbers[..3].iter().for_each(|number| put_varint(out, *number));
        }
        Kind::Fixed { .. } => put_varint(out, numbers[1] / 1_000),
        Kind::Sliding => put_varint(out, numbers[1]),
        Kind::SlidingBy { precision, strict } => {
            put_varint(out, precision.get() / 1_000);
            put_varint(out, u64::from(strict));
        }
        Kind::FixedFromFirst | Kind::Log | Kind::Concurrent => {}
    }
}

/// The limit of a form.
fn limit_of(form: &[u8]) -> Result<Limit, Malformed> {
    let mut from = Bytes::new(form);
    let kind = from.u8()?;
    let (capacity, window) = (varint(&mut from)?, Micros::from_millis(varint(&mut from)?));
    let mut count = capacity;
    let kind_of_limit = match kind % 16 {
        kind @ (0 | 6) => {
            let (per_token, per_tick) = (varint(&mut from)?, varint(&mut from)?);
            let tick = varint(&mut from)?;
            let ticks = window.get().checked_div(tick).and_then(|x| x.checked_div(per_token));
            count = ticks.and_then(|tick| tick.checked_mul(per_tick)).ok_or(NOT_A_LIMIT)?;
            match kind {
                0 => Kind::TokenBucket { burst: capacity },
                _ => Kind::Queue { places: capacity.checked_sub(1).ok_or(NOT_A_LIMIT)? },
            }
        }
        1 => Kind::Fixed { offset: offset_of(window, varint(&mut from)?) },
        2 => Kind::FixedFromFirst,
        3 => Kind::Log,
        4 => {
            varint(&mut from)?;
            Kind::Sliding
        }
        5 => {
            let precision = Micros::from_millis(varint(&mut from)?);
            Kind::SlidingBy { precision, strict: varint(&mut from)? == 1 }
        }
        7 => Kind::Concurrent,
        _ => return Err(NOT_A_LIMIT),
    };
    let spec = Spec { count, window, kind: kind_of_limit, count_denied: kind >= 16 };
    let limit = spec.build().map_err(|_| NOT_A_LIMIT)?;
    let mut written = Vec::with_capacity(form.len());
    put_limit(&mut written, &limit);
    ensure(written == form, NOT_A_LIMIT.0)?;
    Ok(limit)
}

const NOT_A_LIMIT: Malformed = Malformed("a limit that cannot be");

/// The offset whose windows begin at this origin, both within a window.
fn offset_of(window: Micros, origin_ms: u64) -> Micros {
    let zero = Spec::new(1, window, Kind::Fixed { offset: Micros::ZERO }).build();
    let origin = zero.map_or(0, |zero| numbers_of(&zero)[1]);
    let window = window.get().max(1);
    Micros::new((origin_ms.saturating_mul(1_000) % window + window - origin) % window)
}

/// Why the bytes of a key are not state that can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// No charge can have made them: they count as none.
    Junk(Malformed),
    /// Another version wrote them: they are left alone.
    Schema(u8),
}

impl From<Malformed> for Unreadable {
    fn from(it: Malformed) -> Self {
        Unreadable::Junk(it)
    }
}

impl KeyState {
    /// Reads what a script keeps of a key of this policy: its state and its block.
    ///
    /// # Errors
    /// The bytes are not such as a script of this version makes.
    pub fn from_script(
        policy: &Policy,
        bytes: &[u8],
    ) -> Result<(KeyState, Option<Block>), Unreadable> {
        if bytes.is_empty() {
            return Ok((KeyState::default(), None));
        }
        match bytes {
            [MAGIC, schema, _, _, _, ..] if *schema != SCHEMA => Err(Unreadable::Schema(*schema)),
            [MAGIC, SCHEMA, ..] => Ok(key(policy, Bytes::new(&bytes[2..]))?),
            _ => Err(Unreadable::Junk(Malformed("bytes that do not begin as a key's do"))),
        }
    }

    /// Adds a reservation that a script keeps of the key.
    ///
    /// # Errors
    /// The bytes are not such as a script makes.
    pub fn add_script_reservation(
        &mut self,
        policy: &Policy,
        id: Id,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<(), Malformed> {
        let mut from = Bytes::new(bytes);
        let (cost, acts_at) = (number(&mut from)?, number(&mut from)?);
        let form = prefixed(&mut from)?;
        if form != policy.script_form() {
            return Ok(());
        }
        let level = |_| Ok(Level { at: number(&mut from)?, used: number(&mut from)? });
        let marks = policy.limits().iter().map(level).collect::<Result<Box<[_]>, _>>()?;
        // The states stay in the form that they are in.
        let form = self.policy().unwrap_or(policy).clone();
        let reservation = Reservation { id, cost, acts_at, policy: policy.clone(), marks };
        self.add_reservation(&form, reservation, now);
        Ok(())
    }
}

fn key(policy: &Policy, mut from: Bytes<'_>) -> Result<(KeyState, Option<Block>), Malformed> {
    let flags = from.u8()?;
    let form = prefixed(&mut from)?;
    let of = policy.in_script_form(form)?;
    let block = match flags & BLOCKED {
        0 => None,
        _ => Some(match number(&mut from)? {
            0 => Block::Forever,
            end => Block::Until(Timestamp::from_micros(end - 1)),
        }),
    };
    let states = of.limits().iter().map(|limit| state(limit, &mut from));
    let states = states.collect::<Result<Vec<_>, _>>()?;
    let mut strays = Vec::new();
    if flags & ASIDE != 0 {
        for _ in 0..from.u8()? {
            let (rank, len) = (usize::from(from.u8()?), usize::from(from.u8()?));
            let limit = limit_of(from.take(len)?)?;
            let state = state(&limit, &mut from)?;
            strays.push(Stray { limit, rank, state });
        }
    }
    ensure(from.is_empty(), "more than a key holds")?;
    if strays.is_empty() && states.iter().all(|state| *state == LimitState::Untouched) {
        return Ok((KeyState::default(), block));
    }
    Ok((KeyState::of_parts(&of, states, strays, Vec::new()), block))
}

/// The policy of another form.
fn other(policy: &Policy, form: &[u8]) -> Result<Policy, Malformed> {
    let (mut from, mut limits) = (Bytes::new(form), Vec::new());
    while !from.is_empty() {
        let len = usize::from(from.u8()?);
        limits.push(limit_of(from.take(len)?)?);
    }
    let other = policy.with_limits(limits).ok_or(NOT_A_LIMIT)?;
    ensure(other.script_form() == form, NOT_A_LIMIT.0)?;
    Ok(other)
}

fn state(limit: &Limit, from: &mut Bytes<'_>) -> Result<LimitState, Malformed> {
    Ok(match &limit.rule {
        Rule::Meter(rule) => {
            let level = Level { at: number(from)?, used: number(from)? };
            ensure(rule.can_be(&level), "a level that cannot be")?;
            if level.used == 0 { LimitState::Untouched } else { LimitState::Meter(level) }
        }
        Rule::Window(rule) => {
            let open = Open { end: number(from)?, used: number(from)? };
            ensure(rule.can_be(&open), "a window that cannot be")?;
            if open.used == 0 { LimitState::Untouched } else { LimitState::Window(open) }
        }
        Rule::Weighted(rule) => {
            let (start, current, previous) = (number(from)?, number(from)?, number(from)?);
            let counts = Counts { start, current, previous };
            ensure(rule.can_be(&counts), "counts that cannot be")?;
            if current + previous == 0 {
                return Ok(LimitState::Untouched);
            }
            LimitState::Weighted(Box::new(counts))
        }
        Rule::Log(_) => {
            let entry = entries(from)?;
            let Some(newest) = entry.entries.back() else { return Ok(LimitState::Untouched) };
            // No more than the script itself looks at: of a long log it tells only what matters.
            let in_time = newest.stamp <= Timestamp::MAX.as_micros();
            let paid =
                limit.spec().kind != Kind::Log || newest.sum - entry.base <= 2 * limit.capacity();
            ensure(in_time && paid, "a log that cannot be")?;
            LimitState::Log(Box::new(entry))
        }
        Rule::Leases(_) => {
            let value = held(from)?;
            if value.leases.is_empty() {
                return Ok(LimitState::Untouched);
            }
            ensure(value.can_be(), "leases that cannot be")?;
            LimitState::Leases(Box::new(value))
        }
    })
}

fn entries(from: &mut Bytes<'_>) -> Result<Entries, Malformed> {
    let (base, count) = (number(from)?, from.u32()?);
    let entry = |from: &mut Bytes<'_>| {
        let (stamp, sum) = (number(from)?, number(from)?);
        Ok(Entry { stamp, sum })
    };
    let entries = if count >= LONG {
        from.u32()?;
        let (oldest, newest) = (entry(from)?, entry(from)?);
        // Of its row the key tells no more; a request that needs to know more is told so.
        if oldest == newest { VecDeque::from([newest]) } else { VecDeque::from([oldest, newest]) }
    } else {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        ensure(count <= from.len() / 14, "a log that ends too early")?;
        (0..count).map(|_| entry(from)).collect::<Result<_, _>>()?
    };
    let mut before = (0, base);
    for entry in &entries {
        let grows = (entry.stamp > before.0 || before.0 == 0) && entry.sum > before.1;
        ensure(grows, "a log that does not grow")?;
        before = (entry.stamp, entry.sum);
    }
    Ok(Entries { entries, base })
}

fn held(from: &mut Bytes<'_>) -> Result<Held, Malformed> {
    let (at, total) = (number(from)?, u64::from(from.u32()?));
    let count = from.count(25)?;
    let mut held = Held { at, leases: Vec::with_capacity(count), total };
    for _ in 0..count {
        let id = Id::from_u128(u128::from_be_bytes(from.array()?));
        let (cost, end) = (u64::from(from.u16()?), number(from)?);
        held.leases.push(Lease { id, cost, end });
    }
    let sum: u64 = held.leases.iter().map(|lease| lease.cost).sum();
    ensure(sum == total && total <= MAX_LEASES, "leases whose costs are not their sum")?;
    Ok(held)
}

fn prefixed<'a>(from: &mut Bytes<'a>) -> Result<&'a [u8], Malformed> {
    let len = usize::from(from.u16()?);
    from.take(len)
}

/// Reads a number, which is below 2^56.
///
/// # Errors
/// Fewer than 7 bytes are left.
pub fn number(from: &mut Bytes<'_>) -> Result<u64, Malformed> {
    let mut bytes = [0; 8];
    bytes[..7].copy_from_slice(from.take(7)?);
    Ok(u64::from_le_bytes(bytes))
}

/// Appends a number, which is below 2^56.
pub fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes()[..7]);
}

fn put_u16(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn varint(from: &mut Bytes<'_>) -> Result<u64, Malformed> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = from.u8()?;
        ensure(shift < 56, "a number that is too long")?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
        shift += 7;
    }
}

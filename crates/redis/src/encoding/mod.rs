//! The encoding of policies and key state that the Lua scripts read and write.
//!
//! A number has 7 bytes, little-endian, and is below 2^53; ids have 16 bytes, big-endian.
//!
//! ```text
//! key         head, block, ban, index of reservations, a state for each limit, detached states
//! head        167: u8, schema: u8, flags: u8 (1 block, 2 detached states, 4 index, 8 ban),
//!             length: u16, form
//! form        of each limit length: u8, kind: u8 (16 added if denied requests are counted), then
//!             numbers of 7 bits a byte, low ones first: capacity, window in ms (concurrent: the
//!             lease), and by kind: units per token, units per tick, tick (token bucket, queue);
//!             origin in ms (fixed); tick (sliding); precision in ms, strict (sliding by)
//! block       its end and 1, or 0 for ever: number
//! ban         its end or that of the window: number, denials in the window, or 0 for a ban: number
//! index       the latest time, the position of the oldest entry: numbers, entries: u32, reservations
//!             that are neither cancelled nor deleted: u32
//! state       by kind two or three numbers, as in `tollgate_algorithms::codec`; log: base: number, count:
//!             u32, of each stamp, sum: numbers, or 2^31 + count: u32, position of the oldest, the
//!             oldest and the newest stamp and sum: numbers; leases: at: number, total:
//!             u32, count: u32, of each id, cost: u16, end: number, or at: number, 2^31 + bits in use:
//!             u32, members: u32, epoch, last end: numbers. State without use is all zeros
//! hash        '': key; kind, window, precision, rank, number: a block of a long log, 32 entries; 'r' and
//!             id: a reservation; 'i' and number: a block of the index, 32 of time: number, id
//! sorted set  score -1: 's' and key; score bit × 2^49 + end − epoch: id, bit: u8
//! detached    count: u8, of each rank: u8, length: u8, the limit's form, state
//! argument    fast path: u8 (0 no, 1 yes, 2 if it is the only check, 3 if it admits, too), flags: u8
//!             (1 shadow, 2 ban), limits: u8, log entries: number, length: u16, head, of each limit kind: u8, counts denied: u8,
//!             capacity and five more numbers; then of a ban its denials, window and length: numbers
//! reservation cost, acts at: numbers, length: u16, form, of each limit a level
//! ```

mod numbers;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use tollgate_algorithms::codec::{Bytes, Malformed};
use tollgate_algorithms::state::{
    BanState, DetachedState, FixedWindowState, Lease, LeaseSet, LogEntry, MAX_LEASES, Reservation,
    SlidingLogState, SlidingWindowState, TokenBucketState,
};
use tollgate_algorithms::{
    Block, Id, KeyState, Kind, Limit, LimitState, LogCoverage, Micros, Parameters, Policy,
    PolicyIdentity, Spec, Timestamp,
};

pub(crate) use numbers::{MAX_NUMBER, number, put_number};
use numbers::{prefixed, put_u16, put_varint, varint};

const MAGIC: u8 = 167;
/// The version of the key format. Keys of an unknown version are not changed.
const SCHEMA: u8 = 1;
/// Added to the count of a log, or the bits of the leases, that are not in the bytes of the key.
const LONG_LIST: u32 = 1 << 31;
const BLOCKED: u8 = 1;
const DETACHED: u8 = 2;
const RESERVED: u8 = 4;
const BANNED: u8 = 8;

const INVALID_LIMIT: Malformed = Malformed("a limit is invalid");
const IMPOSSIBLE_STATE: Malformed = Malformed("no charge can produce the state of a limit");

fn ensure(condition: bool, error: Malformed) -> Result<(), Malformed> {
    if condition { Ok(()) } else { Err(error) }
}

/// The encodings of the policies in use, so that a policy is encoded once and not for each call.
///
/// Policies are found by identity. An entry does not keep its policy alive; entries of dropped
/// policies are removed when the cache has doubled in size.
#[derive(Debug, Default)]
pub(crate) struct PolicyEncodings(RwLock<Cache>);

#[derive(Debug, Default)]
struct Cache {
    encodings: HashMap<PolicyIdentity, Arc<PolicyEncoding>>,
    /// The number of entries at which those of dropped policies are removed.
    sweep_at: usize,
}

/// Fewer entries than this are not worth a sweep.
const MIN_SWEEP: usize = 64;

impl PolicyEncodings {
    pub(crate) fn get(&self, policy: &Policy) -> Arc<PolicyEncoding> {
        let identity = policy.identity();
        // The cache is valid after a panic: every entry is inserted whole.
        let cache = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(encoding) = cache.encodings.get(&identity) {
            return Arc::clone(encoding);
        }
        drop(cache);
        let encoding = Arc::new(PolicyEncoding::new(policy));
        let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cache.encodings.len() >= cache.sweep_at {
            cache.encodings.retain(|identity, _| identity.is_alive());
            cache.sweep_at = (2 * cache.encodings.len()).max(MIN_SWEEP);
        }
        Arc::clone(cache.encodings.entry(identity).or_insert(encoding))
    }
}

/// A policy as the scripts read it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PolicyEncoding {
    argument: Box<[u8]>,
    /// The bytes of the argument that are the form of the limits.
    form: Range<usize>,
}

/// The bytes of an argument before the form, and after it for each limit.
const HEADER_LEN: usize = 17;
const LIMIT_LEN: usize = 44;
/// More bytes than the forms of most limits have.
const USUAL_FORM_LEN: usize = 24;

impl PolicyEncoding {
    #[expect(clippy::expect_used, reason = "a policy has at most 16 limits")]
    pub(crate) fn new(policy: &Policy) -> Self {
        let limits = policy.limits();
        let mut form = Vec::with_capacity(USUAL_FORM_LEN * limits.len());
        limits.iter().for_each(|limit| put_form(&mut form, limit));
        let mut out = Vec::with_capacity(HEADER_LEN + form.len() + LIMIT_LEN * limits.len());
        let count = u8::try_from(limits.len()).expect("at most 16 limits");
        let ban = policy.enforced_ban();
        let flags = u8::from(policy.is_shadow()) + 2 * u8::from(ban.is_some());
        out.extend([fast_path(policy), flags, count]);
        let log_entries = u64::try_from(policy.log_entries()).unwrap_or(MAX_NUMBER);
        put_number(&mut out, log_entries.min(MAX_NUMBER));
        let head = [MAGIC, SCHEMA, 0];
        // The length of the form is part of the head.
        put_u16(&mut out, head.len() + 2 + form.len());
        out.extend(head);
        put_u16(&mut out, form.len());
        let start = out.len();
        out.extend(form);
        let form = start..out.len();
        for limit in limits {
            out.extend([kind_number(limit), u8::from(limit.counts_denied())]);
            put_number(&mut out, limit.capacity());
            parameters(limit).into_iter().for_each(|number| put_number(&mut out, number));
        }
        if let Some(ban) = ban {
            let numbers = [ban.denials(), ban.within().get(), ban.span().get()];
            numbers.into_iter().for_each(|number| put_number(&mut out, number));
        }
        PolicyEncoding { argument: out.into_boxed_slice(), form }
    }

    /// The argument that describes the policy to a script.
    pub(crate) fn argument(&self) -> &[u8] {
        &self.argument
    }

    /// The limits as a key names them.
    pub(crate) fn form(&self) -> &[u8] {
        &self.argument[self.form.clone()]
    }

    /// The version of `policy`, which this encodes, with the limits of a form.
    pub(crate) fn version(&self, policy: &Policy, form: &[u8]) -> Result<Policy, Malformed> {
        if form == self.form() {
            return Ok(policy.clone());
        }
        let (mut from, mut limits) = (Bytes::new(form), Vec::new());
        while !from.is_empty() {
            let len = usize::from(from.u8()?);
            limits.push(decode_limit(from.take(len)?)?);
        }
        let version = policy.with_limits(limits).map_err(|_| INVALID_LIMIT)?;
        ensure(PolicyEncoding::new(&version).form() == form, INVALID_LIMIT)?;
        Ok(version)
    }
}

/// Whether the script may take its fast path: 0 no, 1 yes, 2 if the check, acquisition or release is the only
/// one, 3 if it also admits.
fn fast_path(policy: &Policy) -> u8 {
    let is_list = |limit: &Limit| {
        matches!(limit.spec().kind, Kind::Log | Kind::SlidingBy { .. } | Kind::Concurrent)
    };
    let limits = policy.limits();
    let has_list = limits.iter().any(is_list);
    let counts_denied = limits.iter().any(Limit::counts_denied);
    let has_ban = policy.enforced_ban().is_some();
    // A list has no fixed length, so the script does not find the state of another limit after it. A limit that
    // counts denials is charged separately from limits that do not.
    let must_be_alone = has_list || counts_denied;
    if policy.is_shadow() || (must_be_alone && limits.len() > 1) {
        return 0;
    }
    match (counts_denied, has_ban) {
        (true, _) if has_list || has_ban => 0,
        (_, true) => 3,
        _ if must_be_alone => 2,
        _ => 1,
    }
}

/// The numbers that a script computes with.
fn parameters(limit: &Limit) -> [u64; 5] {
    match limit.parameters() {
        Parameters::TokenBucket {
            units_per_token,
            units_per_tick,
            tick,
            capacity_units,
            ticks_to_drain,
        } => [units_per_token, units_per_tick, tick, capacity_units, ticks_to_drain],
        // A window that the first charge opens has no origin.
        Parameters::FixedWindow { window, origin } => [window, origin.unwrap_or(0), 0, 0, 0],
        Parameters::SlidingWindow { window, tick, ticks } => [window, tick, ticks, 0, 0],
        Parameters::SlidingLog { retention, precision } => {
            [retention, precision, limit.spec().window.get() / 1_000, 0, 0]
        }
        Parameters::Concurrency { lease } => [lease, 0, 0, 0, 0],
        _ => unreachable!("the scripts know every algorithm"),
    }
}

fn kind_number(limit: &Limit) -> u8 {
    match limit.spec().kind {
        Kind::TokenBucket { .. } => 0,
        Kind::Fixed { .. } => 1,
        Kind::FixedFromFirst => 2,
        Kind::Log => 3,
        Kind::Sliding => 4,
        Kind::SlidingBy { .. } => 5,
        Kind::Queue { .. } => 6,
        Kind::Concurrent => 7,
        _ => unreachable!("the scripts know every kind"),
    }
}

/// Appends the form of a limit after its length.
#[expect(clippy::expect_used, reason = "a form has at most 40 bytes")]
fn put_form(out: &mut Vec<u8>, limit: &Limit) {
    let start = out.len();
    out.push(0);
    put_limit(out, limit);
    out[start] = u8::try_from(out.len() - start - 1).expect("a form of less than 256 bytes");
}

fn put_limit(out: &mut Vec<u8>, limit: &Limit) {
    let counts_denied = if limit.counts_denied() { 16 } else { 0 };
    out.push(kind_number(limit) + counts_denied);
    let spec = limit.spec();
    put_varint(out, limit.capacity());
    put_varint(out, spec.window.get() / 1_000);
    let numbers = parameters(limit);
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
        _ => {}
    }
}

/// Decodes the form of a limit.
fn decode_limit(form: &[u8]) -> Result<Limit, Malformed> {
    let mut from = Bytes::new(form);
    let number = from.u8()?;
    let (capacity, window) = (varint(&mut from)?, Micros::from_millis(varint(&mut from)?));
    let mut count = capacity;
    let kind = match number % 16 {
        kind @ (0 | 6) => {
            let (per_token, per_tick) = (varint(&mut from)?, varint(&mut from)?);
            let tick = varint(&mut from)?;
            let tokens = window.get().checked_div(tick).and_then(|x| x.checked_div(per_token));
            count = tokens.and_then(|tokens| tokens.checked_mul(per_tick)).ok_or(INVALID_LIMIT)?;
            match kind {
                0 => Kind::TokenBucket { burst: capacity },
                _ => Kind::Queue { places: capacity.checked_sub(1).ok_or(INVALID_LIMIT)? },
            }
        }
        1 => Kind::Fixed { offset: offset(window, varint(&mut from)?)? },
        2 => Kind::FixedFromFirst,
        3 => Kind::Log,
        4 => {
            // The tick follows from the other numbers.
            varint(&mut from)?;
            Kind::Sliding
        }
        5 => {
            let precision = Micros::from_millis(varint(&mut from)?);
            Kind::SlidingBy { precision, strict: varint(&mut from)? == 1 }
        }
        7 => Kind::Concurrent,
        _ => return Err(INVALID_LIMIT),
    };
    let spec = Spec { count, window, kind, count_denied: number >= 16 };
    let limit = spec.build().map_err(|_| INVALID_LIMIT)?;
    let mut encoded = Vec::with_capacity(form.len());
    put_limit(&mut encoded, &limit);
    ensure(encoded == form, INVALID_LIMIT)?;
    Ok(limit)
}

/// The offset of fixed windows with this origin.
fn offset(window: Micros, origin_ms: u64) -> Result<Micros, Malformed> {
    let aligned = Spec::new(1, window, Kind::Fixed { offset: Micros::ZERO }).build();
    let aligned = parameters(&aligned.map_err(|_| INVALID_LIMIT)?)[1];
    let window = window.get();
    let origin = origin_ms.checked_mul(1_000).ok_or(INVALID_LIMIT)?;
    Ok(Micros::new((origin % window + window - aligned) % window))
}

/// An error for the bytes of a key that are not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// No charge can have produced them; they count as an unknown key.
    Corrupt,
    /// Another version wrote them; they are not changed.
    Schema,
}

impl From<Malformed> for Unreadable {
    fn from(_: Malformed) -> Self {
        Unreadable::Corrupt
    }
}

/// Decodes the state and the block of a key under `policy`.
pub(crate) fn decode_key(
    policy: &Policy,
    encoding: &PolicyEncoding,
    bytes: &[u8],
) -> Result<(KeyState, Option<Block>), Unreadable> {
    match bytes {
        [] => Ok((KeyState::default(), None)),
        [MAGIC, schema, _, _, _, ..] if *schema != SCHEMA => Err(Unreadable::Schema),
        [MAGIC, SCHEMA, rest @ ..] => Ok(decode_body(policy, encoding, Bytes::new(rest))?),
        _ => Err(Unreadable::Corrupt),
    }
}

fn decode_body(
    policy: &Policy,
    encoding: &PolicyEncoding,
    mut from: Bytes<'_>,
) -> Result<(KeyState, Option<Block>), Malformed> {
    let flags = from.u8()?;
    let form = prefixed(&mut from)?;
    let version = encoding.version(policy, form)?;
    let block = match flags & BLOCKED {
        0 => None,
        _ => Some(match number(&mut from)? {
            0 => Block::Forever,
            end => Block::Until(Timestamp::from_micros(end - 1)),
        }),
    };
    let ban = if flags & BANNED == 0 { BanState::Clear } else { decode_ban(&mut from)? };
    if flags & RESERVED != 0 {
        // The index of reservations, which the script alone uses.
        from.take(22)?;
    }
    let states = version.limits().iter().map(|limit| decode_state(limit, &mut from));
    let states = states.collect::<Result<Vec<_>, _>>()?;
    let mut detached = Vec::new();
    if flags & DETACHED != 0 {
        for _ in 0..from.u8()? {
            let (rank, len) = (usize::from(from.u8()?), usize::from(from.u8()?));
            let limit = decode_limit(from.take(len)?)?;
            let state = decode_state(&limit, &mut from)?;
            detached.push(DetachedState { limit, rank, state });
        }
    }
    ensure(from.is_empty(), Malformed("unexpected data after the state"))?;
    let is_unknown = detached.is_empty() && states.iter().all(LimitState::is_empty);
    let is_unknown = is_unknown && ban == BanState::Clear;
    let mut state = match is_unknown {
        true => KeyState::default(),
        false => KeyState::from_parts(&version, states, detached, Vec::new()),
    };
    state.set_ban(&version, ban);
    Ok((state, block))
}

fn decode_ban(from: &mut Bytes<'_>) -> Result<BanState, Malformed> {
    let (end, denials) = (Timestamp::from_micros(number(from)?), number(from)?);
    Ok(if denials > 0 { BanState::Counting { end, denials } } else { BanState::Banned { end } })
}

/// Adds an encoded reservation to the state of a key, if it was made under the limits of `policy`.
pub(crate) fn add_reservation(
    state: &mut KeyState,
    policy: &Policy,
    encoding: &PolicyEncoding,
    id: Id,
    bytes: &[u8],
    now: Timestamp,
) -> Result<(), Malformed> {
    let mut from = Bytes::new(bytes);
    let (cost, acts_at) = (number(&mut from)?, number(&mut from)?);
    if prefixed(&mut from)? != encoding.form() {
        return Ok(());
    }
    let level = |_| Ok(TokenBucketState { at: number(&mut from)?, used: number(&mut from)? });
    let marks = policy.limits().iter().map(level).collect::<Result<Box<[_]>, _>>()?;
    let reservation = Reservation { id, cost, acts_at, policy: policy.clone(), marks };
    // The states stay in the numbers of their version.
    let version = state.policy().unwrap_or(policy).clone();
    state.add_reservation(&version, reservation, now);
    Ok(())
}

fn decode_state(limit: &Limit, from: &mut Bytes<'_>) -> Result<LimitState, Malformed> {
    let state = match limit.spec().kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            LimitState::TokenBucket(TokenBucketState { at: number(from)?, used: number(from)? })
        }
        Kind::Fixed { .. } | Kind::FixedFromFirst => {
            LimitState::FixedWindow(FixedWindowState { end: number(from)?, used: number(from)? })
        }
        Kind::Sliding => {
            let (start, current, previous) = (number(from)?, number(from)?, number(from)?);
            let counts = SlidingWindowState { start, current, previous };
            LimitState::SlidingWindow(Box::new(counts))
        }
        Kind::Log | Kind::SlidingBy { .. } => LimitState::SlidingLog(Box::new(decode_log(from)?)),
        Kind::Concurrent => LimitState::Concurrency(Box::new(decode_leases(from)?)),
        _ => unreachable!("the scripts know every kind"),
    };
    // The bytes have only an excerpt of a long log, and scripts read no more of others.
    ensure(limit.can_hold(&state, LogCoverage::Excerpt), IMPOSSIBLE_STATE)?;
    Ok(if state.is_empty() { LimitState::Untouched } else { state })
}

fn decode_log(from: &mut Bytes<'_>) -> Result<SlidingLogState, Malformed> {
    let (base, count) = (number(from)?, from.u32()?);
    let entry = |from: &mut Bytes<'_>| {
        let (stamp, sum) = (number(from)?, number(from)?);
        Ok(LogEntry { stamp, sum })
    };
    if count < LONG_LIST {
        let fits = usize::try_from(count).is_ok_and(|count| count <= from.len() / 14);
        ensure(fits, Malformed("a log is cut off"))?;
        let entries = (0..count).map(|_| entry(from)).collect::<Result<_, _>>()?;
        return Ok(SlidingLogState { entries, base });
    }
    // The position of the oldest entry.
    number(from)?;
    let (oldest, newest) = (entry(from)?, entry(from)?);
    // The bytes have no more of the log. If a request needs more, the reply includes it.
    let mut entries = VecDeque::from([oldest]);
    if newest != oldest {
        entries.push_back(newest);
    }
    Ok(SlidingLogState { entries, base })
}

fn decode_leases(from: &mut Bytes<'_>) -> Result<LeaseSet, Malformed> {
    let (at, total) = (number(from)?, from.u32()?);
    if total >= LONG_LIST {
        // The bytes have only the end of the last lease. The reply includes the leases that a request
        // needs.
        from.take(11)?;
        let last = Lease { id: Id::from_u128(0), cost: 1, end: number(from)? };
        return Ok(LeaseSet { at, leases: vec![last], total: 1 });
    }
    let total = u64::from(total);
    let count = from.count(25)?;
    let mut set = LeaseSet { at, leases: Vec::with_capacity(count), total };
    for _ in 0..count {
        let id = Id::from_u128(u128::from_be_bytes(from.array()?));
        let (cost, end) = (u64::from(from.u16()?), number(from)?);
        set.leases.push(Lease { id, cost, end });
    }
    let sum: u64 = set.leases.iter().map(|lease| lease.cost).sum();
    ensure(sum == total && total <= MAX_LEASES, IMPOSSIBLE_STATE)?;
    Ok(set)
}

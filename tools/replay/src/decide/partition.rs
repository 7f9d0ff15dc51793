//! Some of the keys with their states and counts; each thread owns one partition.
//!
//! Keys are numbered, so that each is looked up once, when its line is read.

use std::hint::black_box;

use foldhash::HashMap;
use hashbrown::HashTable;
use tollgate::{Listed, Operation, Policy, Timestamp};
use tollgate_algorithms::{Anomalies, CheckContext, KeyState, check_single_limit, decide_one};

use crate::convert::{index, to_u32, to_u64};
use crate::read::{PlainChecks, UnnumberedCheck};
use crate::report::{Amount, Bins, RequestOutcome};
use crate::request::Candidate;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) partition: u32,
    /// The number of the key in its partition.
    pub(crate) key: u32,
    pub(crate) cost: u64,
}

pub(crate) struct Partition {
    pub(super) keys: Keys,
    pub(super) tallies: Vec<Tally>,
    pub(crate) columns: Vec<Column>,
    pub(crate) bins: Bins,
    pub(crate) offered: Amount,
    /// All checks in order, if they are needed again for suggestions.
    pub(crate) trace: Option<Vec<(u64, u32, u64)>>,
    /// Checks without a number, because there are too many keys.
    pub(crate) rejected: u64,
}

/// The state of one candidate.
#[derive(Default)]
pub(crate) struct Column {
    pub(crate) states: Vec<KeyState>,
    /// The policy of each key, if the candidate has one per key.
    policies: Vec<Policy>,
    /// The keys on a list of their policy.
    listed: HashMap<u32, Listed>,
    /// The keys that were denied at least once.
    pub(crate) denials: HashMap<u32, Denials>,
    pub(crate) admitted: Amount,
    pub(crate) denied: Amount,
    /// All decisions, until there are too many.
    pub(crate) decisions: Option<Vec<RequestOutcome>>,
}

/// How many checks of a partition are looked up together: what they need is read before it is used, so that the
/// processor waits for the memory of all at once.
const GROUP: usize = 16;

/// How many decisions are kept for pictures.
pub(crate) const MAX_DECISIONS: usize = 20_000;

/// How often and how long a key was denied.
#[derive(Clone, Debug)]
pub(crate) struct Denials {
    pub(crate) amount: Amount,
    pub(crate) first: u64,
    /// The start of the current series of denials.
    start: Option<u64>,
    pub(super) last: u64,
    /// The start and the length of the longest series of denials.
    pub(crate) longest: (u64, u64),
}

impl Denials {
    fn new(at: u64) -> Self {
        let amount = Amount::default();
        Denials { amount, first: at, start: None, last: at, longest: (at, 0) }
    }

    /// Ends the current series at `at`.
    pub(crate) fn end(&mut self, at: u64) {
        if let Some(start) = self.start.take() {
            let length = at - start;
            if length > self.longest.1 {
                self.longest = (start, length);
            }
        }
    }
}

impl Partition {
    pub(crate) fn new(candidates: usize, keeps_trace: bool) -> Self {
        let column = || Column { decisions: Some(Vec::new()), ..Column::default() };
        Partition {
            keys: Keys::default(),
            tallies: Vec::new(),
            columns: std::iter::repeat_with(column).take(candidates).collect(),
            bins: Bins::new(candidates + 1),
            offered: Amount::default(),
            trace: keeps_trace.then(Vec::new),
            rejected: 0,
        }
    }

    /// The numbers of the keys of checks in a block; `None` if there are too many keys.
    pub(super) fn numbers(
        &mut self,
        checks: &[UnnumberedCheck],
        block: &PlainChecks,
        candidates: &[Candidate],
    ) -> Vec<Option<u32>> {
        let mut numbers = Vec::with_capacity(checks.len());
        for group in checks.chunks(GROUP) {
            let mut likely = [None; GROUP];
            for (number, check) in likely.iter_mut().zip(group) {
                *number = self.keys.first_with(lower_half(check.hash));
            }
            let lengths =
                likely.iter().flatten().map(|number| self.keys.slots[index(*number)].length);
            black_box(lengths.fold(0, |all, length| all ^ length));
            numbers.extend(likely.into_iter().zip(group).map(|(likely, check)| {
                let key = block.key(check);
                likely
                    .filter(|number| self.keys.get(*number) == (check.policy, key))
                    .or_else(|| self.number(check.hash, check.policy, key, candidates))
            }));
        }
        numbers
    }

    /// The number of a key of a policy; `None` if there are too many keys.
    pub(crate) fn number(
        &mut self,
        hash: u64,
        policy: u32,
        key: &[u8],
        candidates: &[Candidate],
    ) -> Option<u32> {
        let Some((number, is_new)) = self.keys.number(lower_half(hash), policy, key) else {
            self.rejected += 1;
            return None;
        };
        if is_new {
            self.tallies.push(Tally::default());
            for (column, candidate) in self.columns.iter_mut().zip(candidates) {
                column.states.push(KeyState::default());
                let policy = candidate.policy(policy, key);
                if let Some(listed) = policy.listed(key) {
                    column.listed.insert(number, listed);
                }
                if candidate.fixed_policy().is_none() {
                    column.policies.push(policy);
                }
            }
        }
        Some(number)
    }

    /// Decides those of the events that belong to this one of some partitions.
    pub(crate) fn decide(
        &mut self,
        mine: u32,
        partitions: usize,
        events: &[(Timestamp, Event)],
        candidates: &[Candidate],
    ) {
        for group in events.chunks(GROUP * partitions) {
            let group = group.iter().filter(|(_, event)| event.partition == mine);
            self.read_ahead(group.clone().map(|(_, event)| index(event.key)));
            group.for_each(|(at, event)| self.decide_one(at.as_micros(), event, candidates));
        }
    }

    /// Reads what the decisions on some keys need.
    fn read_ahead(&self, keys: impl Iterator<Item = usize> + Clone) {
        black_box(keys.clone().fold(0, |all, key| all ^ self.tallies[key].last));
        for column in &self.columns {
            let states = keys.clone().map(|key| column.states[key].is_inline());
            black_box(states.fold(false, |all, is_inline| all ^ is_inline));
        }
    }

    fn decide_one(&mut self, at: u64, event: &Event, candidates: &[Candidate]) {
        let key = index(event.key);
        self.offer_request(at, event.cost);
        self.offer_key(at, event.key, event.cost);
        for (place, candidate) in candidates.iter().enumerate() {
            let column = &mut self.columns[place];
            let granted = match candidate.fixed_policy() {
                Some(policy) => column.check(policy, event, key, at),
                None => column.check(&column.policies[key].clone(), event, key, at),
            };
            self.count_request(at, place, event.cost, granted);
            self.count_key(at, place, event.key, event.cost, granted);
        }
    }

    pub(crate) fn offer_request(&mut self, at: u64, cost: u64) {
        self.offered.add(cost);
        let sum = &mut self.bins.at(at)[0];
        *sum = sum.saturating_add(cost);
    }

    pub(crate) fn offer_key(&mut self, at: u64, key: u32, cost: u64) {
        self.tallies[index(key)].add(at, cost);
        if let Some(trace) = &mut self.trace {
            trace.push((at, key, cost));
        }
    }

    /// Counts the decision of a candidate on a request; `granted` is `None` for a denial.
    pub(crate) fn count_request(&mut self, at: u64, place: usize, cost: u64, granted: Option<u64>) {
        let column = &mut self.columns[place];
        match granted {
            Some(granted) => {
                column.admitted.add(granted);
                let sum = &mut self.bins.at(at)[place + 1];
                *sum = sum.saturating_add(granted);
            }
            None => column.denied.add(cost),
        }
        if let Some(decisions) = &mut column.decisions {
            let time = Timestamp::from_micros(at);
            decisions.push(RequestOutcome { time, is_admitted: granted.is_some(), cost });
            if decisions.len() > MAX_DECISIONS {
                column.decisions = None;
            }
        }
    }

    /// Counts the decision of a candidate on the check of a key.
    pub(crate) fn count_key(
        &mut self,
        at: u64,
        place: usize,
        key: u32,
        cost: u64,
        granted: Option<u64>,
    ) {
        let (column, tally) = (&mut self.columns[place], &mut self.tallies[index(key)]);
        let mask = 1 << place;
        let was_denied = tally.denying & mask != 0;
        match granted {
            Some(_) if was_denied => {
                tally.denying &= !mask;
                if let Some(denials) = column.denials.get_mut(&key) {
                    denials.end(at);
                }
            }
            Some(_) => {}
            None => {
                tally.denying |= mask;
                let denials = column.denials.entry(key).or_insert_with(|| Denials::new(at));
                denials.amount.add(cost);
                denials.start.get_or_insert(at);
                denials.last = at;
            }
        }
    }
}

impl Column {
    /// Checks an event; returns the granted cost if it is admitted.
    fn check(&mut self, policy: &Policy, event: &Event, key: usize, at: u64) -> Option<u64> {
        if !self.listed.is_empty() {
            match self.listed.get(&event.key) {
                Some(Listed::Allow) => return Some(event.cost),
                Some(Listed::Deny) => return None,
                None => {}
            }
        }
        let state = &mut self.states[key];
        admits(policy, state, event.cost, at).then_some(event.cost)
    }
}

/// Charges a check if it is admitted; returns whether it is.
pub(crate) fn admits(policy: &Policy, state: &mut KeyState, cost: u64, at: u64) -> bool {
    let (now, mut anomalies) = (Timestamp::from_micros(at), Anomalies::default());
    if policy.is_single_limit() && state.is_single_limit_of(policy) {
        return check_single_limit(policy, state, cost, now, &mut anomalies).allowed;
    }
    let mut check = CheckContext { policy, state, block: &mut None, cost };
    decide_one(&Operation::Check { lease: None }, &mut check, now, &mut anomalies).allowed
}

/// The windows of the peaks in seconds; each is a multiple of the previous one.
pub(super) const WINDOWS: [u64; 4] = [1, 10, 60, 3_600];

#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) total: Amount,
    /// The second of the last request.
    last: u64,
    /// The cost in the current window of each length.
    open: [u32; WINDOWS.len()],
    /// The highest cost in a window of each length.
    pub(super) peaks: [u32; WINDOWS.len()],
    /// A bit for each candidate that denied the last request.
    denying: u32,
}

impl Tally {
    /// Counts a request. Times never go back.
    fn add(&mut self, at: u64, cost: u64) {
        let second = at / 1_000_000;
        self.total.add(cost);
        // Peaks saturate at 2^32 to keep a tally small.
        let small = u32::try_from(cost).unwrap_or(u32::MAX);
        if second == self.last {
            for (open, peak) in self.open.iter_mut().zip(&mut self.peaks) {
                *open = open.saturating_add(small);
                *peak = (*peak).max(*open);
            }
            return;
        }
        for ((window, open), peak) in WINDOWS.iter().zip(&mut self.open).zip(&mut self.peaks) {
            let is_open = second / window == self.last / window;
            *open = if is_open { open.saturating_add(small) } else { small };
            *peak = (*peak).max(*open);
        }
        self.last = second;
    }
}

/// How many bytes of a key are stored inline. An IPv4 address and the network of an IPv6 address
/// are shorter.
const INLINE: usize = 22;

/// The keys of a partition with their policies, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The number of each key, with 32 bits of its hash.
    table: HashTable<(u32, u32)>,
    slots: Vec<Slot>,
    /// The bytes of keys that are not inline.
    long: Vec<u8>,
}

/// A key in 32 bytes, so that two share a cache line.
#[derive(Clone, Copy, Debug)]
struct Slot {
    policy: u32,
    length: u32,
    /// The bytes of the key, or the position of a long key.
    bytes: [u8; INLINE + 2],
}

impl Slot {
    fn bytes<'a>(&'a self, long: &'a [u8]) -> &'a [u8] {
        let length = index(self.length);
        if length <= INLINE {
            return &self.bytes[..length];
        }
        let start = long_start(&self.bytes);
        &long[start..start + length]
    }
}

fn long_start(bytes: &[u8; INLINE + 2]) -> usize {
    let mut start = [0; 8];
    start.copy_from_slice(&bytes[..8]);
    index(u64::from_le_bytes(start))
}

/// The half of a hash that identifies a key; the upper half selects the partition.
fn lower_half(hash: u64) -> u32 {
    to_u32(hash & u64::from(u32::MAX))
}

/// Spreads the stored half of a hash over 64 bits.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Keys {
    /// The number of a key with this half of a hash; few keys share one.
    fn first_with(&self, half: u32) -> Option<u32> {
        self.table.find(spread(half), |&(tag, _)| tag == half).map(|&(_, number)| number)
    }

    /// The number of a key, and whether it is new; `None` if all numbers are in use.
    pub(super) fn number(&mut self, half: u32, policy: u32, key: &[u8]) -> Option<(u32, bool)> {
        let Keys { table, slots, long } = self;
        let is_equal = |&(tag, number): &(u32, u32)| {
            let slot = &slots[index(number)];
            tag == half && slot.policy == policy && slot.bytes(long) == key
        };
        if let Some(&(_, number)) = table.find(spread(half), is_equal) {
            return Some((number, false));
        }
        let number = u32::try_from(slots.len()).ok().filter(|number| *number < u32::MAX)?;
        let mut bytes = [0; INLINE + 2];
        if key.len() <= INLINE {
            bytes[..key.len()].copy_from_slice(key);
        } else {
            bytes[..8].copy_from_slice(&to_u64(long.len()).to_le_bytes());
            long.extend_from_slice(key);
        }
        slots.push(Slot { policy, length: to_u32(key.len()), bytes });
        table.insert_unique(spread(half), (half, number), |&(tag, _)| spread(tag));
        Some((number, true))
    }

    /// A key, and the number of its policy.
    pub(super) fn get(&self, number: u32) -> (u32, &[u8]) {
        let slot = &self.slots[index(number)];
        (slot.policy, slot.bytes(&self.long))
    }
}

//! What an observer knows about a key: its counters, and what it has counted.

use std::collections::VecDeque;

use tollgate::Timestamp;

use super::counter::{Counter, Reading, Rise};
use super::events::End;
use crate::record::{Interval, Usage, add_interval};
use crate::redis::{PendingKey, StateChange, StoredState};
use crate::tracked::Tracked;

/// The most counters of a key. If there are more, the one that expires first is forgotten.
const MAX_COUNTERS: usize = 64;

/// What was counted.
#[derive(Clone, Debug)]
struct Counted {
    usage: Usage,
    intervals: VecDeque<Interval>,
}

/// A write that the store has not confirmed.
#[derive(Clone, Debug)]
struct Write {
    counted: Counted,
    state: StateChange,
}

/// The totals of a record: the requests, and the time of the last one in µs.
pub(super) type Totals = (u64, u64);

#[derive(Debug)]
pub(super) struct KeyState {
    /// The state in the record.
    stored: Vec<u8>,
    counters: Vec<Counter>,
    /// What was counted since the last write was formed.
    counted: Option<Counted>,
    unconfirmed: Option<Write>,
    /// The totals that the hash beside the counters does not have yet.
    pub(super) uncopied: Option<Totals>,
}

impl KeyState {
    /// Continues from a record.
    pub(super) fn new(stored: StoredState) -> Self {
        let uncopied = (stored.last > 0).then_some((stored.allowed, stored.last));
        let counters = decode(&stored.state).unwrap_or_default();
        KeyState { stored: stored.state, counters, counted: None, unconfirmed: None, uncopied }
    }

    /// Takes over a read of a counter.
    pub(super) fn read(&mut self, name: &[u8], reading: Reading, tracked: &Tracked) -> Rise {
        let index = self.counters.iter().position(|counter| *counter.name == *name);
        let index = index.unwrap_or_else(|| {
            if self.counters.len() == MAX_COUNTERS {
                self.forget_first();
            }
            self.counters.push(Counter::new(name));
            self.counters.len() - 1
        });
        let rise = self.counters[index].update(reading);
        if rise.by > 0 {
            self.count(rise.by, reading.now * 1_000, tracked);
        }
        rise
    }

    fn forget_first(&mut self) {
        let counters = self.counters.iter().enumerate();
        let first = counters.min_by_key(|(_, counter)| counter.expiry.unwrap_or(u64::MAX));
        if let Some((index, _)) = first {
            self.counters.remove(index);
        }
    }

    fn count(&mut self, rise: u64, time: u64, tracked: &Tracked) {
        let seen = Timestamp::from_micros(time);
        let usage =
            Usage { first_seen: seen, last_seen: seen, allowed: rise, denied: 0, cost: rise };
        let counted = match &mut self.counted {
            Some(counted) => {
                counted.usage.merge(&usage);
                counted
            }
            none => none.insert(Counted { usage, intervals: VecDeque::new() }),
        };
        if tracked.interval > 0 {
            let start = Timestamp::from_micros(time - time % tracked.interval);
            let interval = Interval { start, allowed: rise, denied: 0, cost: rise };
            add_interval(&mut counted.intervals, interval, tracked.horizon(time));
        }
    }

    /// Takes over a notification about the end of a counter.
    pub(super) fn end(&mut self, name: &[u8], end: End) {
        if let Some(counter) = self.counters.iter_mut().find(|counter| *counter.name == *name) {
            match end {
                End::Expired => counter.has_expired = true,
                End::Replaced => counter.was_replaced = true,
            }
        }
    }

    /// Takes note that notifications may have been lost.
    pub(super) fn resume(&mut self) {
        self.counters.iter_mut().for_each(|counter| counter.is_resumed = true);
    }

    /// The write that the store has to confirm next, if there is one. `version` distinguishes it from all
    /// others.
    pub(super) fn write(&mut self, version: &str) -> Option<PendingKey> {
        if self.unconfirmed.is_none() {
            let counted = self.counted.take()?;
            let state =
                StateChange { expected: self.stored.clone(), new: encode(version, &self.counters) };
            self.unconfirmed = Some(Write { counted, state });
        }
        let Write { counted, state } = self.unconfirmed.clone()?;
        Some(PendingKey::observed(counted.usage, counted.intervals, state))
    }

    /// Takes note that the store has the write.
    pub(super) fn confirm(&mut self, totals: Totals) {
        if let Some(Write { state, .. }) = self.unconfirmed.take() {
            self.stored = state.new;
        }
        self.uncopied = Some(totals);
    }

    /// The names of its counters.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.counters.iter().map(|counter| &*counter.name)
    }

    /// The increments that are not written yet.
    pub(super) fn unwritten(&self) -> u64 {
        let unconfirmed = self.unconfirmed.as_ref().map(|write| &write.counted);
        self.counted.iter().chain(unconfirmed).map(|counted| counted.usage.allowed).sum()
    }

    /// Forgets counters that had to expire before a time in ms. Returns whether nothing is left.
    pub(super) fn forget(&mut self, time: u64) -> bool {
        self.counters.retain(|counter| !counter.expired_before(time));
        self.counters.is_empty() && self.unwritten() == 0 && self.uncopied.is_none()
    }
}

/// The state for a record: the version, then each counter with its value, its expiry, and the length of
/// its name.
fn encode(version: &str, counters: &[Counter]) -> Vec<u8> {
    let mut state = format!("{version}\n").into_bytes();
    for Counter { name, value, expiry, .. } in counters {
        let expiry = expiry.unwrap_or(0);
        state.extend(format!("{value} {expiry} {}\n", name.len()).into_bytes());
        state.extend_from_slice(name);
    }
    state
}

/// Parses what [`encode`] has written.
fn decode(state: &[u8]) -> Option<Vec<Counter>> {
    let line = |text: &mut &[u8]| {
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = text.split_at_checked(end)?;
        *text = rest.get(1..)?;
        str::from_utf8(line).ok().map(str::to_owned)
    };
    let mut rest = state;
    line(&mut rest)?;
    let mut counters = Vec::new();
    while !rest.is_empty() {
        let line = line(&mut rest)?;
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let (value, expiry, len) = (next()?, next()?, usize::try_from(next()?).ok()?);
        let (name, after) = rest.split_at_checked(len)?;
        rest = after;
        let expiry = Some(expiry).filter(|expiry| *expiry > 0);
        counters.push(Counter { value, expiry, is_resumed: true, ..Counter::new(name) });
    }
    Some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_config::Layers;

    fn tracked() -> Tracked {
        let yaml = "policies: { api: { limits: [1/s], track: { usage: true } } }";
        let layers = Layers::new().named_yaml("tollgate.yaml", yaml);
        Tracked::new(0, "api", &layers.read().unwrap().config.tracks["api"])
    }

    fn reading(value: u64) -> Reading {
        Reading { value, expiry: Some(1_000), now: 500, events: 0 }
    }

    #[test]
    fn a_write_is_repeated_unchanged_until_it_is_confirmed() {
        let tracked = tracked();
        let mut key = KeyState::new(StoredState::default());
        key.read(b"a\n", reading(3), &tracked);
        let arguments = |record: PendingKey| {
            let mut arguments = Vec::new();
            record.write(&mut arguments);
            arguments
        };
        let first = arguments(key.write("v1").unwrap());
        key.read(b"a\n", reading(5), &tracked);
        assert_eq!(arguments(key.write("v2").unwrap()), first);
        assert_eq!(key.unwritten(), 5);
        key.confirm((3, 9));
        assert_eq!((key.unwritten(), key.uncopied), (2, Some((3, 9))));
        let second = arguments(key.write("v3").unwrap());
        assert_eq!(second[2], b"2");
        assert_eq!(&second[7][..], b"v1\n3 1000 2\na\n", "continues from the first");
        assert!(second[8].starts_with(b"v3\n5 "));
    }

    #[test]
    fn a_new_observer_continues_where_the_last_one_stopped() {
        let tracked = tracked();
        let mut key = KeyState::new(StoredState::default());
        key.read(b"{k}:1", reading(3), &tracked);
        key.read(b"{k}:2", reading(7), &tracked);
        let state = encode("v", &key.counters);
        let mut next = KeyState::new(StoredState { state, allowed: 10, last: 9 });
        assert_eq!(next.uncopied, Some((10, 9)));
        assert_eq!(next.read(b"{k}:1", reading(3), &tracked).by, 0);
        assert_eq!(next.read(b"{k}:2", reading(9), &tracked).by, 2);
        assert_eq!(next.unwritten(), 2);
        for state in [&b""[..], b"v", b"v\n1 2", b"v\n1 2 9\nk", b"v\nx 2 1\nk"] {
            assert_eq!(decode(state), None, "{}", state.escape_ascii());
        }
    }

    #[test]
    fn counters_that_expire_first_are_forgotten_first() {
        let tracked = tracked();
        let mut key = KeyState::new(StoredState::default());
        for number in 0..=u64::try_from(MAX_COUNTERS).unwrap() {
            let reading = Reading { expiry: Some(2_000 - number), ..reading(1) };
            key.read(format!("{{k}}:{number}").as_bytes(), reading, &tracked);
        }
        assert_eq!(key.counters.len(), MAX_COUNTERS);
        assert!(key.names().all(|name| name != b"{k}:63"), "the earliest of the full list");
        assert!(!key.forget(1_900), "unwritten");
        key.write("v");
        key.confirm((65, 9));
        key.uncopied = None;
        assert!(!key.forget(2_000));
        assert!(key.forget(2_001));
    }
}

//! What an observer knows about a key: its counters, and what it has counted.

use super::counter::{Counter, Reading, Rise};
use super::events::End;
use crate::redis::{PendingKey, StateChange, StoredState, Totals};
use crate::tally::Tally;
use crate::tracked::Tracked;

/// The most counters of a key. If there are more, the one that expires first is forgotten.
const MAX_COUNTERS: usize = 64;

/// A write that the store has not confirmed.
#[derive(Clone, Debug)]
struct Write {
    counted: Tally,
    state: StateChange,
}

#[derive(Debug)]
pub(super) struct KeyState {
    /// The state in the record.
    stored: Vec<u8>,
    counters: Vec<Counter>,
    /// The latest expiry of a counter that was dropped because there were too many, in ms.
    dropped_expiry: u64,
    /// Counters that expire until then may have been dropped before the subscription began.
    counted_expiry: u64,
    /// When a counter was last read, in ms.
    last_read: u64,
    /// The increments since the last write was formed.
    counted: Option<Tally>,
    unconfirmed: Option<Write>,
    /// The totals that the hash beside the counters does not have yet.
    pub(super) uncopied: Option<Totals>,
}

impl KeyState {
    /// Continues from a record.
    pub(super) fn new(stored: StoredState) -> Self {
        let uncopied = Some(stored.totals).filter(|totals| totals.last > 0);
        let (dropped_expiry, counters) = decode(&stored.state).unwrap_or_default();
        KeyState {
            stored: stored.state,
            counters,
            dropped_expiry,
            counted_expiry: dropped_expiry,
            last_read: 0,
            counted: None,
            unconfirmed: None,
            uncopied,
        }
    }

    /// Counts how much a counter has risen. Returns `None` if there are too many counters: it is not
    /// counted, or it was dropped after it had been counted.
    pub(super) fn apply_reading(
        &mut self,
        name: &[u8],
        reading: Reading,
        tracked: &Tracked,
    ) -> Option<Rise> {
        self.last_read = reading.now;
        let known = self.counters.iter().position(|counter| *counter.name == *name);
        let index = match known {
            Some(index) => index,
            None => {
                let was_dropped =
                    reading.expiry.is_some_and(|expiry| expiry <= self.counted_expiry);
                if was_dropped || self.counters.len() == MAX_COUNTERS && !self.drop_counter() {
                    return None;
                }
                self.counters.push(Counter::new(name));
                self.counters.len() - 1
            }
        };
        let rise = self.counters[index].update(reading);
        if rise.by > 0 {
            self.count(rise.by, reading.now * 1_000, tracked);
        }
        Some(rise)
    }

    /// Drops the counter that expires first. Returns whether there is one that expires.
    fn drop_counter(&mut self) -> bool {
        let counters = self.counters.iter().enumerate();
        let expiring = counters.filter_map(|(index, counter)| Some((counter.expiry?, index)));
        let Some((expiry, index)) = expiring.min() else { return false };
        self.counters.remove(index);
        self.dropped_expiry = self.dropped_expiry.max(expiry);
        true
    }

    fn count(&mut self, rise: u64, time: u64, tracked: &Tracked) {
        let counted = self.counted.get_or_insert_with(|| Tally::new(time));
        counted.count(tracked, time, [rise, 0, rise]);
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
        self.counted_expiry = self.dropped_expiry;
    }

    /// The write that the store has to confirm next, if there is one. `version` distinguishes it from all
    /// others.
    pub(super) fn write(&mut self, version: &str) -> Option<PendingKey> {
        if self.unconfirmed.is_none() {
            let counted = self.counted.take()?;
            let state = StateChange { expected: self.stored.clone(), new: self.encode(version) };
            self.unconfirmed = Some(Write { counted, state });
        }
        let Write { counted, state } = self.unconfirmed.clone()?;
        Some(PendingKey::observed(counted, state))
    }

    /// Takes note that the store has the write.
    pub(super) fn confirm(&mut self, totals: Totals) {
        if let Some(Write { state, .. }) = self.unconfirmed.take() {
            self.stored = state.new;
        }
        self.uncopied = Some(totals);
    }

    /// Continues without the record, because the store has evicted it.
    pub(super) fn begin_record(&mut self) {
        self.stored.clear();
        if let Some(Write { state, .. }) = &mut self.unconfirmed {
            state.expected.clear();
        }
    }

    /// The names of its counters.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.counters.iter().map(|counter| &*counter.name)
    }

    /// The increments that are not written yet.
    pub(super) fn unwritten(&self) -> u64 {
        let unconfirmed = self.unconfirmed.as_ref().map(|write| &write.counted);
        self.counted.iter().chain(unconfirmed).map(|counted| counted.usage().allowed).sum()
    }

    /// Forgets counters that had to expire before a time in ms. Returns whether nothing is left.
    pub(super) fn forget(&mut self, time: u64) -> bool {
        self.counters.retain(|counter| !counter.expired_before(time));
        self.counters.is_empty() && self.is_written()
    }

    /// Whether the record has everything, and no counter was read after a time in ms.
    pub(super) fn is_idle(&self, time: u64) -> bool {
        self.is_written() && self.last_read < time
    }

    fn is_written(&self) -> bool {
        self.unwritten() == 0 && self.uncopied.is_none()
    }

    /// The state for a record: the version and the latest expiry of a dropped counter, then each counter
    /// with its value, its expiry, and the length of its name.
    fn encode(&self, version: &str) -> Vec<u8> {
        let mut state = format!("{version} {}\n", self.dropped_expiry).into_bytes();
        for Counter { name, value, expiry, .. } in &self.counters {
            let expiry = expiry.unwrap_or(0);
            state.extend(format!("{value} {expiry} {}\n", name.len()).into_bytes());
            state.extend_from_slice(name);
        }
        state
    }
}

/// Parses what [`KeyState::encode`] has written.
fn decode(state: &[u8]) -> Option<(u64, Vec<Counter>)> {
    let line = |text: &mut &[u8]| {
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = text.split_at_checked(end)?;
        *text = rest.get(1..)?;
        str::from_utf8(line).ok().map(str::to_owned)
    };
    let mut rest = state;
    let first = line(&mut rest)?;
    let dropped_expiry = first.split_once(' ')?.1.parse().ok()?;
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
    Some((dropped_expiry, counters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::Arguments;
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
        key.apply_reading(b"a\n", reading(3), &tracked);
        let arguments = |record: PendingKey| {
            let mut arguments = Arguments::default();
            record.write(&mut arguments);
            arguments.slices().into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let first = arguments(key.write("v1").unwrap());
        key.apply_reading(b"a\n", reading(5), &tracked);
        assert_eq!(arguments(key.write("v2").unwrap()), first);
        assert_eq!(key.unwritten(), 5);
        let totals = Totals { allowed: 3, last: 9 };
        key.confirm(totals);
        assert_eq!((key.unwritten(), key.uncopied), (2, Some(totals)));
        let second = arguments(key.write("v3").unwrap());
        assert_eq!(second[2], b"2");
        assert_eq!(&second[7][..], b"v1 0\n3 1000 2\na\n", "continues from the first");
        assert!(second[8].starts_with(b"v3 0\n5 "));
    }

    #[test]
    fn a_new_observer_continues_where_the_last_one_stopped() {
        let tracked = tracked();
        let mut key = KeyState::new(StoredState::default());
        key.apply_reading(b"{k}:1", reading(3), &tracked);
        key.apply_reading(b"{k}:2", reading(7), &tracked);
        let totals = Totals { allowed: 10, last: 9 };
        let mut next = KeyState::new(StoredState { state: key.encode("v"), totals });
        assert_eq!(next.uncopied, Some(totals));
        let mut rise = |name: &[u8], value| next.apply_reading(name, reading(value), &tracked);
        assert_eq!(rise(b"{k}:1", 3).unwrap().by, 0);
        assert_eq!(rise(b"{k}:2", 9).unwrap().by, 2);
        assert_eq!(next.unwritten(), 2);
    }

    #[test]
    fn a_malformed_state_is_rejected() {
        for state in ["", "v 0", "v\n", "v x\n", "v 0\n1 2", "v 0\n1 2 9\nk", "v 0\nx 2 1\nk"] {
            assert_eq!(decode(state.as_bytes()), None, "{state:?}");
        }
    }

    /// A key with one counter more than [`MAX_COUNTERS`]; the later ones expire earlier.
    fn key_with_too_many_counters(tracked: &Tracked) -> KeyState {
        let mut key = KeyState::new(StoredState::default());
        for number in 0..=64 {
            assert_eq!(read_counter(&mut key, number, 1, tracked), Some(1));
        }
        key
    }

    fn read_counter(key: &mut KeyState, number: u64, value: u64, tracked: &Tracked) -> Option<u64> {
        let reading = Reading { expiry: Some(2_000 - number), ..reading(value) };
        let rise = key.apply_reading(format!("{{k}}:{number}").as_bytes(), reading, tracked);
        rise.map(|rise| rise.by)
    }

    #[test]
    fn counters_that_expire_first_are_dropped_first() {
        let tracked = tracked();
        let mut key = key_with_too_many_counters(&tracked);
        assert_eq!(key.counters.len(), MAX_COUNTERS);
        assert!(key.names().all(|name| name != b"{k}:63"), "the earliest of the full list");
        assert!(!key.forget(1_900), "unwritten");
        key.write("v");
        key.confirm(Totals { allowed: 65, last: 9 });
        key.forget(2_000);
        assert_eq!(key.counters.len(), 1);
        assert!(!key.forget(2_001), "not copied");
        key.uncopied = None;
        assert!(key.forget(2_001));
    }

    #[test]
    fn a_dropped_counter_is_not_counted_again_by_the_next_observer() {
        let tracked = tracked();
        let key = key_with_too_many_counters(&tracked);
        let totals = Totals { allowed: 65, last: 9 };
        let mut next = KeyState::new(StoredState { state: key.encode("v"), totals });
        for number in 0..=64 {
            let rise = read_counter(&mut next, number, 1, &tracked);
            assert_eq!(rise, Some(0).filter(|_| number != 63), "{number}");
        }
        assert_eq!(next.unwritten(), 0);
        // A counter that expires later than all that were dropped is new.
        let later = Reading { expiry: Some(3_000), ..reading(4) };
        assert_eq!(next.apply_reading(b"{k}:new", later, &tracked).unwrap().by, 4);
    }

    #[test]
    fn a_key_is_idle_when_its_record_has_everything() {
        let tracked = tracked();
        let mut key = KeyState::new(StoredState::default());
        key.apply_reading(b"a", Reading { expiry: None, ..reading(3) }, &tracked);
        assert!(!key.is_idle(501), "unwritten");
        key.write("v");
        key.confirm(Totals { allowed: 3, last: 9 });
        assert!(!key.is_idle(501), "not copied");
        key.uncopied = None;
        assert_eq!((key.is_idle(500), key.is_idle(501)), (false, true));
    }

    #[test]
    fn an_evicted_record_begins_again() {
        let tracked = tracked();
        let totals = Totals { allowed: 3, last: 9 };
        let mut key = KeyState::new(StoredState { state: b"v 0\n3 1000 1\na".to_vec(), totals });
        key.apply_reading(b"a", reading(5), &tracked);
        key.write("v1");
        key.begin_record();
        let mut arguments = Arguments::default();
        key.write("v2").unwrap().write(&mut arguments);
        let arguments = arguments.slices();
        assert_eq!((arguments[2], arguments[7]), (&b"2"[..], &b""[..]));
        assert_eq!(arguments[8], b"v1 0\n5 1000 1\na");
    }
}

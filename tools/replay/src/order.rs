//! Orders events by time.

use std::collections::VecDeque;

use tollgate::{Micros, Timestamp};

use crate::convert::{to_u32, to_u64};
use crate::log::Stamp;

/// Orders events that are almost in the order of their time.
///
/// An event is released with all earlier ones once an event arrives that is later by at least
/// `reorder`. Events of equal time keep their order. The resolution is one second: all events of a
/// second are released together, so the events in the second of the newest one are ordered even if
/// `reorder` is zero. An event whose second has been released is late: it is counted, and released
/// at the earliest open time, so that time never goes backwards. Whether an event is late depends
/// only on the order of events, and not on the calls of [`Order::release`].
///
/// Rotated logs are read oldest first (`access.log.1`, then `access.log`); a log older than the
/// previous one is late.
///
/// With `spread`, times with a resolution of one second are spread over their second: the i-th of n
/// events, from 0, is moved by i/n of a second. Other times are unchanged.
///
/// An event in order takes about 10 ns. Memory is needed only for the events within `reorder`,
/// whatever the gaps between them.
///
/// ```
/// use tollgate::{Micros, Timestamp};
/// use tollgate_replay::log::Stamp;
/// use tollgate_replay::order::Order;
///
/// let second = |at: u64| Stamp { at: Timestamp::from_micros(at * 1_000_000), whole_second: true };
/// let mut order = Order::new(Micros::from_secs(60), true);
/// for (at, name) in [(100, 'a'), (101, 'c'), (100, 'b'), (500, 'd'), (100, 'e')] {
///     order.push(second(at), name);
/// }
/// let mut events = Vec::new();
/// order.finish();
/// order.release(&mut events);
/// let found: Vec<_> = events.iter().map(|(at, name)| format!("{name} {at}")).collect();
/// assert_eq!(found, ["a 100", "b 100.5", "c 101", "e 440", "d 500"]);
/// assert_eq!(order.late(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Order<T> {
    /// Ascending, none empty.
    seconds: VecDeque<Second<T>>,
    reorder: Micros,
    spread: bool,
    newest: Timestamp,
    /// The first second that is not due.
    open: u64,
    late: u64,
    /// Whether a time was spread.
    has_spread: bool,
    /// The memory of released seconds, for reuse.
    free: Vec<Vec<(u32, T)>>,
}

/// How many released seconds are kept for reuse.
const MAX_FREE: usize = 4;

impl<T: Copy> Order<T> {
    /// Events may be `reorder` late; `spread` spreads times with a resolution of one second.
    pub fn new(reorder: Micros, spread: bool) -> Self {
        Order {
            seconds: VecDeque::new(),
            reorder,
            spread,
            newest: Timestamp::EPOCH,
            open: 0,
            late: 0,
            has_spread: false,
            free: Vec::new(),
        }
    }

    /// The number of late events.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Whether a time was spread over its second.
    pub fn has_spread(&self) -> bool {
        self.has_spread
    }

    /// Adds the next event, in the order of the log.
    pub fn push(&mut self, stamp: Stamp, event: T) {
        let (second, micros) = split(stamp.at);
        if stamp.at > self.newest {
            self.newest = stamp.at;
            self.open = self.open.max(split(stamp.at.saturating_sub(self.reorder)).0);
        }
        if second < self.open {
            self.late += 1;
            let open = self.open;
            self.second(open).push_exact(0, event);
        } else if stamp.whole_second && self.spread {
            self.has_spread = true;
            self.second(second).push_spread(event);
        } else {
            self.second(second).push_exact(micros, event);
        }
    }

    /// Appends the events that are due to `into`, with their times.
    pub fn release(&mut self, into: &mut Vec<(Timestamp, T)>) {
        while self.release_second(into) {}
    }

    /// As [`release`](Self::release) for the first second only; returns whether it is due.
    pub fn release_second(&mut self, into: &mut Vec<(Timestamp, T)>) -> bool {
        let is_due = self.seconds.front().is_some_and(|front| front.second < self.open);
        let Some(mut second) = is_due.then(|| self.seconds.pop_front()).flatten() else {
            return false;
        };
        second.release(into);
        if self.free.len() < MAX_FREE {
            self.free.push(second.events);
        }
        true
    }

    /// Makes all events due, so that the next call of [`release`](Self::release) returns them.
    pub fn finish(&mut self) {
        // A late event may be in a second after the newest one.
        let last = self.seconds.back().map_or(0, |last| last.second);
        self.open = self.open.max(split(self.newest).0.max(last) + 1);
    }

    /// The events of a second.
    fn second(&mut self, second: u64) -> &mut Second<T> {
        // Mostly this is the second of the previous event, or the next one.
        let at = match self.seconds.back() {
            Some(last) if last.second == second => self.seconds.len() - 1,
            Some(last) if last.second > second => {
                match self.seconds.binary_search_by_key(&second, |seconds| seconds.second) {
                    Ok(at) => at,
                    Err(at) => self.insert(at, second),
                }
            }
            _ => self.insert(self.seconds.len(), second),
        };
        &mut self.seconds[at]
    }

    fn insert(&mut self, at: usize, second: u64) -> usize {
        let mut events = self.free.pop().unwrap_or_else(|| {
            // As many as in the second before, because a vector that grows is copied several times.
            let before = at.checked_sub(1).and_then(|before| self.seconds.get(before));
            Vec::with_capacity(before.map_or(0, |before| before.events.len()))
        });
        events.clear();
        let new = Second { second, events, spread: 0, in_order: true, last: 0 };
        self.seconds.insert(at, new);
        at
    }
}

/// The second of a time, and the microseconds within it.
fn split(at: Timestamp) -> (u64, u32) {
    let (second, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
    (second, to_u32(micros))
}

/// Marks an event that will be spread, instead of its microseconds.
const SPREAD: u32 = u32::MAX;

/// The events of one second, in the order of arrival.
#[derive(Clone, Debug)]
struct Second<T> {
    second: u64,
    events: Vec<(u32, T)>,
    spread: u64,
    /// Whether the other events are in order.
    in_order: bool,
    /// The microseconds of the last of the other events.
    last: u32,
}

impl<T: Copy> Second<T> {
    fn push_spread(&mut self, event: T) {
        self.spread += 1;
        self.events.push((SPREAD, event));
    }

    fn push_exact(&mut self, micros: u32, event: T) {
        self.in_order &= micros >= self.last;
        self.last = micros;
        self.events.push((micros, event));
    }

    /// Appends the events in the order of their times.
    fn release(&mut self, into: &mut Vec<(Timestamp, T)>) {
        let exact = to_u64(self.events.len()) - self.spread;
        let is_mixed = exact > 0 && self.spread > 0;
        if self.spread > 0 {
            self.spread();
        }
        if is_mixed || !self.in_order {
            self.events.sort_by_key(|(micros, _)| *micros);
        }
        let start = self.second * 1_000_000;
        into.extend(self.events.iter().map(|(micros, event)| {
            (Timestamp::from_micros(start.saturating_add(u64::from(*micros))), *event)
        }));
    }

    /// Moves the i-th of n events to i/n of the second, rounded down. Quotient and remainder are
    /// accumulated, because a division per event would dominate the cost.
    fn spread(&mut self) {
        let (quotient, remainder) = (1_000_000 / self.spread, 1_000_000 % self.spread);
        let (mut micros, mut left) = (0, 0);
        for (event, _) in self.events.iter_mut().filter(|(micros, _)| *micros == SPREAD) {
            *event = to_u32(micros);
            micros += quotient;
            left += remainder;
            if left >= self.spread {
                left -= self.spread;
                micros += 1;
            }
        }
    }
}

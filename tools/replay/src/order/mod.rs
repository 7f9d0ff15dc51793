//! Events in the order of their time.

mod second;

use std::collections::VecDeque;

use tollgate::{Micros, Timestamp};

use crate::log::Stamp;
use second::Second;

/// Puts events in the order of their time, that come nearly so.
///
/// Each is kept until an event comes that is later by `reorder` and more, and is then released with all
/// that are earlier; events of one time in the order in which they came. Time is told in whole
/// seconds here: all of a second are released together, so what comes in the second of the newest is
/// put in order even if `reorder` is none. An event whose second was due already is late: it is counted,
/// and released at the earliest time that is still open, so that time never goes backwards. What is
/// late depends on the order of the events alone, and not on when [`Order::release`] is called.
///
/// Rotated logs are given oldest first (`access.log.1`, then `access.log`): what is read first comes
/// first, and a log that is older than the one before it is late.
///
/// Stamps of whole seconds are spread over their second if `spread` says so: of n of a second the i-th,
/// from 0, happens i/n of a second later. Other stamps are taken as they are.
///
/// Costs some 10 ns for an event that comes in order, and memory for the events of `reorder` only,
/// whatever gap there is between them.
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
/// order.release(&mut events);
/// order.finish(&mut events);
/// let found: Vec<_> = events.iter().map(|(at, name)| (at.to_string(), *name)).collect();
/// let found: Vec<_> = found.iter().map(|(at, name)| (at.as_str(), *name)).collect();
/// assert_eq!(found, [("100", 'a'), ("100.5", 'b'), ("101", 'c'), ("440", 'e'), ("500", 'd')]);
/// assert_eq!(order.late(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Order<T> {
    /// Ascending, none empty.
    seconds: VecDeque<Second<T>>,
    reorder: Micros,
    spread: bool,
    newest: Timestamp,
    /// The first second that is still open: those before it are due.
    open: u64,
    late: u64,
    /// Whether a stamp was spread.
    has_spread: bool,
    /// Memory of seconds that are done with.
    free: Vec<Second<T>>,
}

/// So much memory of seconds is kept.
const MAX_FREE: usize = 4;

impl<T: Copy> Order<T> {
    /// Events may come `reorder` late. `spread` says whether stamps of whole seconds are spread.
    #[must_use]
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

    /// How many events were late.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Whether there was a stamp of a whole second, and was spread.
    #[must_use]
    pub fn has_spread(&self) -> bool {
        self.has_spread
    }

    /// Takes the next event, in the order in which they were logged.
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

    /// Appends what is due to `into`, with the time at which it happens.
    pub fn release(&mut self, into: &mut Vec<(Timestamp, T)>) {
        let open = self.open;
        self.release_before(open, into);
    }

    /// Appends all that is left to `into`.
    pub fn finish(&mut self, into: &mut Vec<(Timestamp, T)>) {
        self.release_before(u64::MAX, into);
        self.open = self.open.max(split(self.newest).0 + 1);
    }

    fn release_before(&mut self, open: u64, into: &mut Vec<(Timestamp, T)>) {
        while self.seconds.front().is_some_and(|front| front.second < open)
            && let Some(mut second) = self.seconds.pop_front()
        {
            second.release(into);
            if self.free.len() < MAX_FREE {
                self.free.push(second);
            }
        }
    }

    /// The events of a second.
    fn second(&mut self, second: u64) -> &mut Second<T> {
        // Nearly always it is that of the event before, or the next.
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
        let new = self.free.pop().unwrap_or_default().of(second);
        self.seconds.insert(at, new);
        at
    }
}

/// The second of a time, and the microseconds in it.
fn split(at: Timestamp) -> (u64, u32) {
    let (second, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
    (second, u32::try_from(micros).unwrap_or(0))
}

//! The events of one second.

use tollgate::Timestamp;

/// What an event has in place of its microseconds if it is spread.
const SPREAD: u32 = u32::MAX;

/// The events of one second, in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Second<T> {
    pub(super) second: u64,
    events: Vec<(u32, T)>,
    /// How many of them are to be spread.
    spread: u64,
    /// Whether those that are not come in order.
    in_order: bool,
    /// The microseconds of the last that is not.
    last: u32,
}

impl<T> Default for Second<T> {
    fn default() -> Self {
        Second { second: 0, events: Vec::new(), spread: 0, in_order: true, last: 0 }
    }
}

impl<T: Copy> Second<T> {
    /// The same memory, for another second.
    pub(super) fn of(self, second: u64) -> Self {
        let mut events = self.events;
        events.clear();
        Second { second, events, ..Second::default() }
    }

    pub(super) fn push_spread(&mut self, event: T) {
        self.spread += 1;
        self.events.push((SPREAD, event));
    }

    pub(super) fn push_exact(&mut self, micros: u32, event: T) {
        self.in_order &= micros >= self.last;
        self.last = micros;
        self.events.push((micros, event));
    }

    /// Appends the events with their times, in the order of these.
    pub(super) fn release(&mut self, into: &mut Vec<(Timestamp, T)>) {
        let exact = u64::try_from(self.events.len()).unwrap_or(u64::MAX) - self.spread;
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

    /// Gives the i-th of n that are to be spread i/n of the second, rounded down. Quotient and remainder are
    /// summed up, since a division for each would be most of the work.
    fn spread(&mut self) {
        let (quotient, remainder) = (1_000_000 / self.spread, 1_000_000 % self.spread);
        let (mut micros, mut left) = (0, 0);
        for (event, _) in self.events.iter_mut().filter(|(x, _)| *x == SPREAD) {
            *event = u32::try_from(micros).unwrap_or(SPREAD);
            micros += quotient;
            left += remainder;
            if left >= self.spread {
                left -= self.spread;
                micros += 1;
            }
        }
    }
}

//! When each request is due.

use std::cell::Cell;

use crate::clock::{Nanos, nanos};
use crate::plan::Load;

/// The requests that one thread sends. With a rate each has its time beforehand, whatever becomes of
/// the others.
#[derive(Debug)]
pub(crate) struct Schedule {
    taken: Cell<u64>,
    most: u64,
    end: Nanos,
    rate: Option<u64>,
    thread: u64,
    threads: u64,
}

/// When to ask next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// At this time; it has been taken.
    At(Nanos),
    /// Never again.
    Never,
}

const SECOND: u128 = 1_000_000_000;

impl Schedule {
    /// The share of one thread of several.
    pub(crate) fn new(load: &Load, thread: usize) -> Self {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let (thread, threads) = (count(thread), count(load.threads).max(1));
        let share = |all: u64| all / threads + u64::from(thread < all % threads);
        let most = load.iterations.map_or(u64::MAX, share);
        let end = nanos(load.duration);
        Schedule { taken: Cell::new(0), most, end, rate: load.rate, thread, threads }
    }

    /// Takes the next request.
    pub(crate) fn take(&self, now: Nanos) -> Due {
        let taken = self.taken.get();
        let due = self.rate.map_or(now, |rate| self.due(taken, rate));
        if taken >= self.most || now >= self.end || due >= self.end {
            return Due::Never;
        }
        self.taken.set(taken + 1);
        Due::At(due)
    }

    /// Whether nothing can be taken any more.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.taken.get() >= self.most || now >= self.end
    }

    fn due(&self, number: u64, rate: u64) -> Nanos {
        let number = u128::from(number) * u128::from(self.threads) + u128::from(self.thread);
        u64::try_from(number * SECOND / u128::from(rate)).unwrap_or(u64::MAX)
    }

    /// How many were due by that time, whether they were taken or not.
    pub(crate) fn due_by(&self, now: Nanos) -> u64 {
        let Some(rate) = self.rate else { return self.taken.get() };
        let passed = u128::from(now.min(self.end)) * u128::from(rate);
        // The last number whose time is before now, and all of this thread up to it.
        let numbers = passed.div_ceil(SECOND).saturating_sub(u128::from(self.thread));
        let due = u64::try_from(numbers.div_ceil(u128::from(self.threads))).unwrap_or(u64::MAX);
        due.min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn load(rate: Option<u64>, iterations: Option<u64>, threads: usize) -> Load {
        Load {
            connections: 1,
            pipeline: 1,
            threads,
            rate,
            iterations,
            duration: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            hold: None,
        }
    }

    fn taken(schedule: &Schedule, now: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| match schedule.take(now) {
            Due::At(due) => Some(due),
            Due::Never => None,
        })
        .collect()
    }

    #[test]
    fn a_rate_fixes_every_time_beforehand() {
        let load = load(Some(4), None, 2);
        let [first, second] = [0, 1].map(|x| Schedule::new(&load, x));
        assert_eq!([first.due_by(0), second.due_by(0)], [0, 0]);
        assert_eq!([first.due_by(1), second.due_by(1)], [1, 0]);
        assert_eq!([first.due_by(600_000_000), second.due_by(600_000_000)], [2, 1]);
        assert_eq!([first.due_by(9_000_000_000), second.due_by(9_000_000_000)], [2, 2]);
        assert_eq!(taken(&first, 0), [0, 500_000_000]);
        assert_eq!(taken(&second, 0), [250_000_000, 750_000_000]);
    }

    #[test]
    fn iterations_are_shared_and_the_end_is_the_end() {
        let load = load(None, Some(5), 2);
        let [first, second] = [0, 1].map(|x| Schedule::new(&load, x));
        assert_eq!([taken(&first, 7).len(), taken(&second, 7).len()], [3, 2]);
        assert_eq!(Schedule::new(&load, 0).take(1_000_000_000), Due::Never);
    }
}

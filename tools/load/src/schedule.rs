//! When each request is due.

use std::cell::Cell;

use crate::clock::{Nanos, nanos};
use crate::plan::Load;

/// The requests of one thread. With a rate, the time of each is fixed in advance, independent of
/// what happens to the others.
#[derive(Debug)]
pub(crate) struct Schedule {
    taken: Cell<u64>,
    max: u64,
    end: Nanos,
    rate: Option<u64>,
    thread: u64,
    threads: u64,
}

const SECOND: u128 = 1_000_000_000;

impl Schedule {
    /// The share of one thread.
    pub(crate) fn new(load: &Load, thread: usize) -> Self {
        let (thread, threads) = (widen(thread), widen(load.threads).max(1));
        let share = |total: u64| total / threads + u64::from(thread < total % threads);
        let max = load.iterations.map_or(u64::MAX, share);
        let end = nanos(load.duration);
        Schedule { taken: Cell::new(0), max, end, rate: load.rate, thread, threads }
    }

    /// Takes the next request and returns when it is due; `None` when no request is left.
    pub(crate) fn take(&self, now: Nanos) -> Option<Nanos> {
        let taken = self.taken.get();
        let due = self.rate.map_or(now, |rate| self.due_time(taken, rate));
        if taken >= self.max || now >= self.end || due >= self.end {
            return None;
        }
        self.taken.set(taken + 1);
        Some(due)
    }

    /// Whether no request is left.
    pub(crate) fn is_finished(&self, now: Nanos) -> bool {
        self.taken.get() >= self.max || now >= self.end
    }

    fn due_time(&self, number: u64, rate: u64) -> Nanos {
        let number = u128::from(number) * u128::from(self.threads) + u128::from(self.thread);
        // A time beyond 584 years saturates: it is past the end of every run.
        u64::try_from(number * SECOND / u128::from(rate)).unwrap_or(u64::MAX)
    }

    /// The number of requests that were due by `now`, taken or not.
    pub(crate) fn due_by(&self, now: Nanos) -> u64 {
        let Some(rate) = self.rate else { return self.taken.get() };
        let units = u128::from(now.min(self.end)) * u128::from(rate);
        // The requests of all threads before `now`, then those of this thread.
        let numbers = units.div_ceil(SECOND).saturating_sub(u128::from(self.thread));
        let due = numbers.div_ceil(u128::from(self.threads)).min(u128::from(self.max));
        u64::try_from(due).unwrap_or(self.max)
    }
}

#[expect(clippy::expect_used, reason = "supported targets have at most 64-bit addresses")]
fn widen(number: usize) -> u64 {
    u64::try_from(number).expect("a usize fits 64 bits")
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

    fn take_all(schedule: &Schedule, now: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| schedule.take(now)).collect()
    }

    #[test]
    fn a_rate_fixes_every_time_in_advance() {
        let load = load(Some(4), None, 2);
        let [first, second] = [0, 1].map(|thread| Schedule::new(&load, thread));
        assert_eq!([first.due_by(0), second.due_by(0)], [0, 0]);
        assert_eq!([first.due_by(1), second.due_by(1)], [1, 0]);
        assert_eq!([first.due_by(600_000_000), second.due_by(600_000_000)], [2, 1]);
        assert_eq!([first.due_by(9_000_000_000), second.due_by(9_000_000_000)], [2, 2]);
        assert_eq!(take_all(&first, 0), [0, 500_000_000]);
        assert_eq!(take_all(&second, 0), [250_000_000, 750_000_000]);
    }

    #[test]
    fn threads_share_iterations_and_no_request_is_due_after_the_end() {
        let load = load(None, Some(5), 2);
        let [first, second] = [0, 1].map(|thread| Schedule::new(&load, thread));
        assert_eq!([take_all(&first, 7).len(), take_all(&second, 7).len()], [3, 2]);
        assert_eq!(Schedule::new(&load, 0).take(1_000_000_000), None);
    }
}

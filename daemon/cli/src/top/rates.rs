//! Rates: differences of counters over the time between two readings.
#![expect(clippy::float_arithmetic, reason = "rates for display")]

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

/// The seconds that rates are averaged over, as on the dashboard.
const SECONDS: f64 = 5.0;

/// Decisions by result; those without the store, which are degraded, are also allowed or denied.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Counts<T = u64> {
    pub(super) allowed: T,
    pub(super) denied: T,
    pub(super) shadow_denied: T,
    pub(super) degraded: T,
    pub(super) errors: T,
}

impl Counts {
    /// The decisions per second since an earlier reading, to two decimals.
    fn rates(self, before: Counts, seconds: f64) -> Counts<f64> {
        let rate = |count: u64, before: u64| {
            let count = u32::try_from(count.saturating_sub(before)).unwrap_or(u32::MAX);
            (f64::from(count) / seconds * 100.0).round() / 100.0
        };
        Counts {
            allowed: rate(self.allowed, before.allowed),
            denied: rate(self.denied, before.denied),
            shadow_denied: rate(self.shadow_denied, before.shadow_denied),
            degraded: rate(self.degraded, before.degraded),
            errors: rate(self.errors, before.errors),
        }
    }
}

impl Counts<f64> {
    /// All decisions.
    pub(super) fn total(&self) -> f64 {
        self.allowed + self.denied + self.shadow_denied
    }

    fn plus(self, other: Self) -> Self {
        Counts {
            allowed: self.allowed + other.allowed,
            denied: self.denied + other.denied,
            shadow_denied: self.shadow_denied + other.shadow_denied,
            degraded: self.degraded + other.degraded,
            errors: self.errors + other.errors,
        }
    }
}

/// The counters of a policy or a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) counts: Counts,
    /// Before this time, it counted nothing.
    pub(super) first_seen: f64,
}

/// Counters by name at a time of the daemon's clock.
#[derive(Debug)]
struct Reading {
    time: f64,
    counters: HashMap<String, Counter>,
}

/// The readings of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Window {
    readings: VecDeque<Reading>,
}

impl Window {
    /// Adds a reading. One that is not later than the last is the same.
    pub(super) fn add(&mut self, time: f64, counters: HashMap<String, Counter>) {
        if self.readings.back().is_some_and(|last| last.time >= time) {
            return;
        }
        self.readings.push_back(Reading { time, counters });
        while self.readings.len() > 2 && self.readings[0].time < time - SECONDS {
            self.readings.pop_front();
        }
    }

    /// The seconds between the first and the last reading.
    pub(super) fn seconds(&self) -> f64 {
        match (self.readings.front(), self.readings.back()) {
            (Some(first), Some(last)) => last.time - first.time,
            _ => 0.0,
        }
    }

    /// The rates of all names together; absent before the second reading.
    pub(super) fn total(&self) -> Option<Counts<f64>> {
        let names = self.readings.back().filter(|_| self.readings.len() > 1)?.counters.keys();
        Some(names.filter_map(|name| self.rates(name)).fold(Counts::default(), Counts::plus))
    }

    /// The rates since the earliest reading that shows what a policy or key had counted then.
    pub(super) fn rates(&self, name: &str) -> Option<Counts<f64>> {
        let last = self.readings.back()?;
        let counter = last.counters.get(name)?;
        let earlier = self.readings.iter().filter(|reading| reading.time < last.time);
        let (time, before) = earlier
            .map(|reading| (reading, reading.counters.get(name)))
            .find_map(|(reading, before)| match before {
                Some(before) => Some((reading.time, before.counts)),
                // It is new, and not one that was left out.
                None if counter.first_seen >= reading.time => {
                    Some((reading.time, Counts::default()))
                }
                None => None,
            })?;
        Some(counter.counts.rates(before, last.time - time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of the allowed requests of keys, and when each was first seen.
    fn add(window: &mut Window, time: f64, counts: &[(&str, u64, f64)]) {
        let counter = |&(name, allowed, first_seen): &(&str, u64, f64)| {
            let counts = Counts { allowed, ..Counts::default() };
            (name.to_owned(), Counter { counts, first_seen })
        };
        window.add(time, counts.iter().map(counter).collect());
    }

    fn rate(window: &Window, name: &str) -> Option<f64> {
        window.rates(name).map(|rates| rates.allowed)
    }

    #[test]
    fn rates_are_differences_over_the_measured_time() {
        let mut window = Window::default();
        add(&mut window, 100.0, &[("a", 50, 1.0)]);
        assert_eq!(rate(&window, "a"), None, "one reading has no rate");
        add(&mut window, 102.5, &[("a", 60, 1.0)]);
        assert_eq!(rate(&window, "a"), Some(4.0));
        add(&mut window, 102.5, &[("a", 60, 1.0)]);
        assert_eq!(rate(&window, "a"), Some(4.0), "the same reading changes nothing");
        add(&mut window, 105.1, &[("a", 66, 1.0)]);
        assert_eq!(rate(&window, "a"), Some(2.31), "6 in 2.6 s: the first reading is too old");
    }

    #[test]
    fn a_key_that_is_new_counts_from_zero_and_one_that_was_not_listed_has_no_rate() {
        let mut window = Window::default();
        add(&mut window, 100.0, &[]);
        add(&mut window, 102.0, &[("new", 6, 101.0), ("old", 500, 7.0)]);
        assert_eq!(rate(&window, "new"), Some(3.0));
        assert_eq!(rate(&window, "old"), None);
        add(&mut window, 103.0, &[("old", 504, 7.0)]);
        assert_eq!(rate(&window, "old"), Some(4.0), "since the first reading that listed it");
        assert_eq!(rate(&window, "new"), None, "it is no longer listed");
    }
}

//! How much a counter has risen between two reads.

/// A counter, as it was last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) name: Box<[u8]>,
    /// The highest value since it began.
    pub(super) value: u64,
    /// When it expires in ms, by the server's clock.
    pub(super) expiry: Option<u64>,
    /// Whether a notification said that it expired.
    pub(super) has_expired: bool,
    /// Whether a notification said that it was deleted, evicted or set since the read.
    pub(super) was_replaced: bool,
    /// Whether notifications may have been lost since the read.
    pub(super) is_resumed: bool,
    /// How far the value is ahead of the notifications: by increments of more than 1, and by increments
    /// whose notification arrives after the read.
    pub(super) ahead: u64,
}

/// A read of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) value: u64,
    pub(super) expiry: Option<u64>,
    /// The server's time in ms.
    pub(super) now: u64,
    /// The notifications since the last read.
    pub(super) events: u64,
}

/// What a read shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rise {
    pub(super) by: u64,
    /// Whether the value is lower than before, although the counter has not begun again: increments may
    /// have been lost by a failover, or the application has decreased it.
    pub(super) has_decreased: bool,
    /// The part that no notification explains yet.
    pub(super) unnotified: u64,
    /// The part of earlier rises that these notifications explain.
    pub(super) explained: u64,
}

impl Counter {
    /// A counter that has not been read before.
    pub(super) fn new(name: &[u8]) -> Self {
        Counter {
            name: name.into(),
            value: 0,
            expiry: None,
            has_expired: false,
            was_replaced: false,
            is_resumed: false,
            ahead: 0,
        }
    }

    /// Takes over a read. A counter that has expired counts from 0 again.
    pub(super) fn update(&mut self, reading: Reading) -> Rise {
        if self.begins_again(reading) {
            *self = Counter { expiry: reading.expiry, ..Counter::new(&self.name) };
        }
        let by = reading.value.saturating_sub(self.value);
        let has_decreased = reading.value < self.value;
        self.value = self.value.max(reading.value);
        self.expiry = reading.expiry;
        (self.was_replaced, self.is_resumed) = (false, false);
        let explained = reading.events.min(self.ahead);
        let unnotified = by.saturating_sub(reading.events - explained);
        self.ahead = self.ahead - explained + unnotified;
        Rise { by, has_decreased, unnotified, explained }
    }

    fn begins_again(&self, reading: Reading) -> bool {
        match self.expiry {
            // The application may have extended the expiry before it passed. A notification decides;
            // without one, a counter is assumed to have expired when it had to.
            Some(expiry) if reading.expiry != self.expiry && reading.now >= expiry => {
                self.has_expired || self.is_resumed || reading.value < self.value
            }
            // It got its expiry after the read.
            None if self.has_expired => true,
            _ => self.was_replaced && reading.value < self.value,
        }
    }

    /// Whether it had to expire before a time.
    pub(super) fn expired_before(&self, time: u64) -> bool {
        self.expiry.is_some_and(|expiry| expiry < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: u64, expiry: Option<u64>, now: u64) -> Reading {
        Reading { value, expiry, now, events: 0 }
    }

    #[test]
    fn notifications_explain_rises_also_if_they_arrive_later() {
        let mut counter = Counter::new(b"k");
        let mut unexplained = 0;
        // Value, notifications, and the increments so far that none explains.
        for (value, events, expected) in [(3, 2, 1), (3, 1, 0), (4, 1, 0), (9, 1, 4), (11, 2, 4)] {
            let rise = counter.update(Reading { events, ..reading(value, Some(9), 1) });
            unexplained = unexplained + rise.unnotified - rise.explained;
            assert_eq!(unexplained, expected, "{value}");
        }
    }

    /// A counter of 10 that expires at 1,000, and the rise of a read.
    #[track_caller]
    fn check(notice: &str, (value, expiry, now): (u64, Option<u64>, u64), expected: (u64, bool)) {
        let mut counter = Counter { value: 10, expiry: Some(1_000), ..Counter::new(b"k") };
        counter.has_expired = notice == "expired";
        counter.was_replaced = notice == "replaced";
        counter.is_resumed = notice == "resumed";
        let rise = counter.update(reading(value, expiry, now));
        assert_eq!((rise.by, rise.has_decreased), expected, "{notice}: {value} {expiry:?} {now}");
        assert_eq!(counter.expiry, expiry);
        // The same read once more shows nothing new.
        let again = counter.update(reading(value, expiry, now));
        assert_eq!(again.by, 0, "{notice}");
    }

    #[test]
    fn a_counter_rises_while_it_lives() {
        check("", (12, Some(1_000), 500), (2, false));
        check("", (10, Some(1_000), 500), (0, false));
        check("resumed", (12, Some(1_000), 500), (2, false));
        // The expiry was extended in time.
        check("", (12, Some(1_500), 900), (2, false));
        check("", (12, Some(1_500), 1_001), (2, false));
        check("", (12, None, 1_001), (2, false));
        // A notification that belongs to the end of this counter, and arrived early.
        check("expired", (12, Some(1_000), 999), (2, false));
    }

    #[test]
    fn a_counter_that_has_expired_begins_again() {
        check("expired", (12, Some(2_000), 1_001), (12, false));
        check("expired", (3, Some(2_000), 1_001), (3, false));
        check("", (3, Some(2_000), 1_001), (3, false));
        check("resumed", (12, Some(2_000), 1_001), (12, false));
    }

    #[test]
    fn a_value_that_falls_counts_only_if_it_was_replaced() {
        check("", (9, Some(1_000), 500), (0, true));
        check("", (9, Some(1_200), 500), (0, true));
        check("replaced", (1, Some(1_200), 500), (1, false));
        check("replaced", (11, Some(1_200), 500), (1, false));
        // After a fall, the highest value remains.
        let mut counter = Counter::new(b"k");
        let rises = [10, 8, 10, 11].map(|value| counter.update(reading(value, Some(1_000), 1)).by);
        assert_eq!(rises, [10, 0, 0, 1]);
    }

    #[test]
    fn a_counter_without_expiry_rises_until_it_is_replaced() {
        let mut counter = Counter::new(b"k");
        let mut rise = |value, was_replaced| {
            counter.was_replaced = was_replaced;
            counter.update(reading(value, None, 1)).by
        };
        assert_eq!(rise(5, false), 5);
        assert_eq!(rise(7, false), 2);
        assert_eq!(rise(1, true), 1);
        assert_eq!(rise(1, false), 0);
        let mut counter = Counter { value: 3, has_expired: true, ..Counter::new(b"k") };
        assert_eq!(counter.update(reading(4, Some(9), 5)).by, 4);
    }
}

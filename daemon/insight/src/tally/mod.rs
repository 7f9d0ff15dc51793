//! The decisions about a key, added up.

mod notes;

use std::collections::VecDeque;

use tollgate::Timestamp;

use crate::record::{Interval, Note, Usage, add};
use crate::recorder::TrackedDecision;
use crate::tracked::Tracked;
use notes::Notes;

/// Totals, the timeline, and the last notes.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    usage: Usage,
    /// The last interval of the timeline. Decisions find it in the same cache line as the totals.
    current: Option<Interval>,
    notes: Notes,
    /// The intervals before the last one, by ascending time.
    earlier: VecDeque<Interval>,
}

impl Tally {
    /// No decisions yet; the first one will be at this time in µs.
    pub(crate) fn new(time: u64) -> Self {
        let seen = Timestamp::from_micros(time);
        let usage = Usage { first_seen: seen, last_seen: seen, allowed: 0, denied: 0, cost: 0 };
        Tally { usage, current: None, notes: Notes::default(), earlier: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The number of decisions.
    pub(crate) fn decisions(&self) -> u64 {
        self.usage.allowed + self.usage.denied
    }

    /// The intervals by ascending time.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = &Interval> {
        self.earlier.iter().chain(&self.current)
    }

    /// The last notes, the oldest first.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.list()
    }

    /// Reads what the next decision will read, so that it is in the cache.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, |interval| interval.cost);
        self.notes.touch() ^ self.usage.allowed ^ current ^ u64::from(self.earlier.is_empty())
    }

    /// The size of what it has allocated.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.earlier.capacity() * size_of::<Interval>() + self.notes.bytes()
    }

    /// Adds a decision.
    #[inline]
    pub(crate) fn add(&mut self, tracked: &Tracked, decision: &TrackedDecision<'_>) {
        let allowed = u64::from(decision.answer.is_allowed());
        self.count(tracked, decision.time, [allowed, 1 - allowed, decision.granted]);
        self.notes.push(decision, tracked.track.recent);
    }

    /// Adds numbers of allowed and denied requests at a time in µs, and their cost.
    #[inline]
    pub(crate) fn count(&mut self, tracked: &Tracked, time: u64, counts: [u64; 3]) {
        let seen = Timestamp::from_micros(time);
        let usage = &mut self.usage;
        usage.first_seen = usage.first_seen.min(seen);
        usage.last_seen = usage.last_seen.max(seen);
        add_all([&mut usage.allowed, &mut usage.denied, &mut usage.cost], counts);
        if tracked.interval == 0 {
            return;
        }
        match &mut self.current {
            // A time before the start wraps around to more than an interval.
            Some(Interval { start, allowed, denied, cost })
                if time.wrapping_sub(start.as_micros()) < tracked.interval =>
            {
                add_all([allowed, denied, cost], counts);
            }
            _ => self.count_in_other_interval(tracked, time, counts),
        }
    }

    #[cold]
    fn count_in_other_interval(&mut self, tracked: &Tracked, time: u64, counts: [u64; 3]) {
        let start = Timestamp::from_micros(time - time % tracked.interval);
        let intervals = &mut self.earlier;
        intervals.extend(self.current.take());
        let at = intervals.partition_point(|interval| interval.start < start);
        if intervals.get(at).is_none_or(|interval| interval.start != start) {
            intervals.insert(at, Interval { start, allowed: 0, denied: 0, cost: 0 });
        }
        let Interval { allowed, denied, cost, .. } = &mut intervals[at];
        add_all([allowed, denied, cost], counts);
        self.current = intervals.pop_back();
        let horizon = tracked.horizon(self.usage.last_seen.as_micros());
        while intervals.front().is_some_and(|first| first.start.as_micros() < horizon) {
            intervals.pop_front();
        }
    }

    /// Forgets the timeline.
    pub(crate) fn clear_timeline(&mut self) {
        (self.current, self.earlier) = (None, VecDeque::new());
    }
}

#[inline]
fn add_all(totals: [&mut u64; 3], counts: [u64; 3]) {
    for (total, count) in totals.into_iter().zip(counts) {
        add(total, count);
    }
}

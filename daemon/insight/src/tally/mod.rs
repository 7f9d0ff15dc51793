//! The decisions about a key, added up.

mod notes;

use std::collections::VecDeque;

use tollgate::Timestamp;

use crate::record::{Interval, Note, Usage, add};
use crate::recorder::TrackedDecision;
use crate::tracked::Tracked;
use notes::{Notes, Texts};

/// Totals, the timeline, and the last notes. As small as possible: a table has those of 100,000 keys,
/// and reads them in random order.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    usage: Usage,
    /// The last interval of the timeline. It starts at [`NEVER`] if there is none.
    current: Interval,
    notes: Notes,
    more: Option<Box<More>>,
}

const NEVER: Timestamp = Timestamp::from_micros(u64::MAX);
const NO_INTERVAL: Interval = Interval { start: NEVER, allowed: 0, denied: 0, cost: 0 };

/// What not every decision needs.
#[derive(Clone, Debug, Default)]
struct More {
    /// The intervals before the last one, by ascending time.
    earlier: VecDeque<Interval>,
    texts: Texts,
}

impl Tally {
    /// No decisions yet; the first one will be at this time in µs.
    pub(crate) fn new(time: u64) -> Self {
        let seen = Timestamp::from_micros(time);
        let usage = Usage { first_seen: seen, last_seen: seen, allowed: 0, denied: 0, cost: 0 };
        Tally { usage, current: NO_INTERVAL, notes: Notes::default(), more: None }
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
        let current = (self.current.start != NEVER).then_some(&self.current);
        self.more.iter().flat_map(|more| &more.earlier).chain(current)
    }

    /// The last notes, the oldest first.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.list(self.more.iter().flat_map(|more| more.texts.iter()))
    }

    /// Reads what the next decision will read, so that it is in the cache.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.notes.touch() ^ self.usage.allowed ^ self.current.cost
    }

    /// The size of what it has allocated.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let more = self.more.as_ref().map_or(0, |more| {
            let intervals = more.earlier.capacity() * size_of::<Interval>();
            size_of::<More>() + intervals + more.texts.bytes()
        });
        self.notes.bytes() + more
    }

    /// Adds a decision.
    #[inline]
    pub(crate) fn add(&mut self, tracked: &Tracked, decision: &TrackedDecision<'_>) {
        let allowed = u64::from(decision.answer.is_allowed());
        self.count(tracked, decision.time, [allowed, 1 - allowed, decision.granted]);
        if !self.notes.push(decision, tracked.track.recent) {
            let texts = &mut self.more.get_or_insert_default().texts;
            self.notes.insert(decision, tracked.track.recent, texts);
        }
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
        // A time before the start wraps around to more than an interval.
        if time.wrapping_sub(self.current.start.as_micros()) < tracked.interval
            && self.current.start != NEVER
        {
            self.current.add(counts);
        } else {
            self.count_in_other_interval(tracked, time, counts);
        }
    }

    #[cold]
    fn count_in_other_interval(&mut self, tracked: &Tracked, time: u64, counts: [u64; 3]) {
        let start = Timestamp::from_micros(time - time % tracked.interval);
        if self.current.start == NEVER {
            self.current.start = start;
            self.current.add(counts);
            return;
        }
        let intervals = &mut self.more.get_or_insert_default().earlier;
        intervals.push_back(self.current);
        let at = intervals.partition_point(|interval| interval.start < start);
        if intervals.get(at).is_none_or(|interval| interval.start != start) {
            intervals.insert(at, Interval { start, ..NO_INTERVAL });
        }
        intervals[at].add(counts);
        self.current = intervals.pop_back().unwrap_or(NO_INTERVAL);
        let horizon = tracked.horizon(self.usage.last_seen.as_micros());
        while intervals.front().is_some_and(|first| first.start.as_micros() < horizon) {
            intervals.pop_front();
        }
    }

    /// Forgets the timeline.
    pub(crate) fn clear_timeline(&mut self) {
        self.current = NO_INTERVAL;
        if let Some(more) = &mut self.more {
            more.earlier = VecDeque::new();
        }
    }
}

impl Interval {
    #[inline]
    fn add(&mut self, counts: [u64; 3]) {
        add_all([&mut self.allowed, &mut self.denied, &mut self.cost], counts);
    }
}

#[inline]
fn add_all(totals: [&mut u64; 3], counts: [u64; 3]) {
    for (total, count) in totals.into_iter().zip(counts) {
        add(total, count);
    }
}

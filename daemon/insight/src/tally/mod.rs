//! The decisions about a key, added up.

mod notes;

use std::collections::VecDeque;

use tollgate::Timestamp;

use crate::record::{Interval, Note, Usage, add};
use crate::recorder::TrackedDecision;
use crate::tracked::Tracked;
use notes::{Notes, Texts};

/// The start of decisions without a timeline, in µs: later than any time stamp.
const NO_TIMELINE: u64 = 1 << 63;

/// Totals, the timeline, and the last notes. Nearly every decision changes only its fields and the last
/// note: together with a short key, the fields are two cache lines.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    first_seen: Timestamp,
    last_seen: Timestamp,
    /// The start of the last interval of the timeline in µs, and the decisions since.
    start: u64,
    current: Counts,
    notes: Notes,
    rest: Option<Box<Rest>>,
}

/// Numbers of requests, and the cost that was charged.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    allowed: u64,
    denied: u64,
    cost: u64,
}

/// What a decision rarely needs.
#[derive(Clone, Debug, Default)]
struct Rest {
    /// All decisions but those of the last interval.
    before: Counts,
    /// The intervals before the last one, by ascending time.
    earlier: VecDeque<Interval>,
    texts: Texts,
}

impl Counts {
    #[inline]
    fn add(&mut self, more: Counts) {
        add(&mut self.allowed, more.allowed);
        add(&mut self.denied, more.denied);
        add(&mut self.cost, more.cost);
    }

    fn since(self, start: u64) -> Interval {
        let Counts { allowed, denied, cost } = self;
        Interval { start: Timestamp::from_micros(start), allowed, denied, cost }
    }
}

impl Tally {
    /// No decisions yet; the first one will be at this time in µs.
    pub(crate) fn new(time: u64) -> Self {
        let seen = Timestamp::from_micros(time);
        let (current, notes, rest) = Default::default();
        Tally { first_seen: seen, last_seen: seen, start: NO_TIMELINE, current, notes, rest }
    }

    pub(crate) fn usage(&self) -> Usage {
        let mut counts = self.current;
        if let Some(rest) = &self.rest {
            counts.add(rest.before);
        }
        let Counts { allowed, denied, cost } = counts;
        let (first_seen, last_seen) = (self.first_seen, self.last_seen);
        Usage { first_seen, last_seen, allowed, denied, cost }
    }

    #[inline]
    pub(crate) fn last_seen(&self) -> Timestamp {
        self.last_seen
    }

    /// The number of decisions.
    pub(crate) fn decisions(&self) -> u64 {
        let usage = self.usage();
        usage.allowed + usage.denied
    }

    /// The intervals by ascending time.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = Interval> {
        let earlier = self.rest.iter().flat_map(|rest| &rest.earlier).copied();
        earlier.chain(self.last_interval())
    }

    fn last_interval(&self) -> Option<Interval> {
        (self.start != NO_TIMELINE).then(|| self.current.since(self.start))
    }

    /// The last notes, the oldest first.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.list(self.rest.as_ref().map(|rest| &rest.texts))
    }

    /// Reads what the next decision will read, so that it is in the cache.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.last_seen.as_micros() ^ self.current.cost ^ self.notes.touch()
    }

    /// The size of what it has allocated.
    pub(crate) fn bytes(&self) -> usize {
        let rest = self.rest.as_ref().map_or(0, |rest| {
            size_of::<Rest>() + rest.earlier.capacity() * size_of::<Interval>() + rest.texts.bytes()
        });
        self.notes.bytes() + rest
    }

    /// Adds a decision, and what it allocates to `bytes`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        tracked: &Tracked,
        decision: &TrackedDecision<'_>,
        bytes: &mut usize,
    ) {
        let max = tracked.track.recent;
        let allowed = u64::from(decision.answer.is_allowed());
        let counts = [allowed, 1 - allowed, decision.granted];
        if self.is_in_last_interval(tracked, decision.time) && self.notes.accepts(decision, max) {
            let before = self.notes.bytes();
            self.count(tracked, decision.time, counts);
            self.notes.push(decision, max);
            *bytes = *bytes - before + self.notes.bytes();
        } else {
            let before = self.bytes();
            self.count(tracked, decision.time, counts);
            self.notes.insert(decision, max, &mut self.rest);
            *bytes = *bytes - before + self.bytes();
        }
    }

    /// Adds numbers of allowed and denied requests at a time in µs, and their cost.
    #[inline]
    pub(crate) fn count(&mut self, tracked: &Tracked, time: u64, counts: [u64; 3]) {
        let [allowed, denied, cost] = counts;
        let counts = Counts { allowed, denied, cost };
        let seen = Timestamp::from_micros(time);
        self.first_seen = self.first_seen.min(seen);
        self.last_seen = self.last_seen.max(seen);
        if self.is_in_last_interval(tracked, time) {
            self.current.add(counts);
        } else {
            self.count_in_other_interval(tracked, time, counts);
        }
    }

    #[inline]
    fn is_in_last_interval(&self, tracked: &Tracked, time: u64) -> bool {
        // A time before the start wraps around to more than an interval.
        time.wrapping_sub(self.start) < tracked.interval
            || tracked.interval == 0 && self.start == NO_TIMELINE
    }

    #[cold]
    fn count_in_other_interval(&mut self, tracked: &Tracked, time: u64, counts: Counts) {
        let start = match tracked.interval {
            0 => NO_TIMELINE,
            interval => time - time % interval,
        };
        let is_first = self.rest.is_none() && self.decisions() == 0;
        if is_first {
            (self.start, self.current) = (start, counts);
            return;
        }
        let last = self.last_interval();
        let Rest { before, earlier, .. } = &mut **self.rest.get_or_insert_default();
        let newest = last.or(earlier.back().copied());
        if newest.is_none_or(|newest| newest.start.as_micros() < start) {
            before.add(self.current);
            earlier.extend(last);
            (self.start, self.current) = (start, counts);
        } else {
            before.add(counts);
            let new = counts.since(start);
            let at = earlier.partition_point(|interval| interval.start < new.start);
            match earlier.get_mut(at).filter(|interval| interval.start == new.start) {
                Some(interval) => interval.add(new),
                None => earlier.insert(at, new),
            }
        }
        let horizon = tracked.horizon(self.last_seen.as_micros());
        while earlier.front().is_some_and(|first| first.start.as_micros() < horizon) {
            earlier.pop_front();
        }
    }

    /// Forgets the timeline.
    pub(crate) fn clear_timeline(&mut self) {
        self.start = NO_TIMELINE;
        if let Some(rest) = &mut self.rest {
            self.current.add(std::mem::take(&mut rest.before));
            rest.earlier = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{MAX_TOTAL, NoteAnswer};

    const INTERVAL: u64 = 60_000_000;
    /// Five intervals.
    const TIMELINE: u64 = 5 * INTERVAL;

    fn tracked(track: &str) -> Tracked {
        let yaml = format!("policies: {{ api: {{ limits: [1/s], track: {track} }} }}");
        let read = tollgate_config::Layers::new().named_yaml("tollgate.yaml", &yaml).read();
        Tracked::new(0, "api", &read.unwrap().config.tracks.remove("api").unwrap())
    }

    /// What a tally of the same decisions should have.
    #[derive(Debug, Default)]
    struct Model {
        counts: Counts,
        first_seen: u64,
        last_seen: u64,
        intervals: Vec<Interval>,
        notes: Vec<Note>,
    }

    impl Model {
        fn add(&mut self, tracked: &Tracked, decision: &TrackedDecision<'_>) {
            let TrackedDecision { time, cost, granted, answer, note, .. } = *decision;
            let allowed = u64::from(answer.is_allowed());
            let counts = Counts { allowed, denied: 1 - allowed, cost: granted };
            self.counts.add(counts);
            self.first_seen = self.first_seen.min(time);
            self.last_seen = self.last_seen.max(time);
            if tracked.interval > 0 {
                let start = time - time % INTERVAL;
                let new = counts.since(start);
                match self.intervals.iter_mut().find(|interval| interval.start == new.start) {
                    Some(interval) => interval.add(new),
                    None => self.intervals.push(new),
                }
                self.intervals.sort_by_key(|interval| interval.start);
                let horizon = self.last_seen - self.last_seen % INTERVAL + INTERVAL - TIMELINE;
                self.intervals.retain(|interval| interval.start.as_micros() >= horizon);
            }
            let at = self.notes.partition_point(|other| other.time.as_micros() <= time);
            let (time, text) = (Timestamp::from_micros(time), note.map(Into::into));
            self.notes.insert(at, Note { time, cost, answer, text });
            self.notes.drain(..self.notes.len().saturating_sub(tracked.track.recent));
        }
    }

    /// Decisions arrive in any order, with and without texts, and reloads change what is kept.
    #[test]
    fn a_tally_has_what_was_added() {
        let few = tracked("{ recent: 8, usage: true, timeline: 5m by 1m }");
        let many = tracked("{ recent: 20, usage: true, timeline: 5m by 1m }");
        let start = 30_000_000 * INTERVAL;
        let mut model = Model { first_seen: start, ..Model::default() };
        let (mut tally, mut bytes) = (Tally::new(start), 0);
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0..20_000_u64 {
            let tracked = if number % 4_000 > 2_000 { &many } else { &few };
            let late = if random.u8(..) < 200 { 0 } else { random.u64(..6 * INTERVAL) };
            let text = format!("note {number}");
            let has_text = number % 3_000 > 1_500 && random.bool();
            let decision = TrackedDecision {
                key: b"",
                time: start + number * INTERVAL / 50 + 6 * INTERVAL - late,
                cost: if random.bool() { MAX_TOTAL } else { random.u64(..100) },
                granted: random.u64(..100),
                answer: NoteAnswer::ALL[random.usize(..5)],
                note: has_text.then_some(&*text),
            };
            tally.add(tracked, &decision, &mut bytes);
            model.add(tracked, &decision);
            let usage = tally.usage();
            let Counts { allowed, denied, cost } = model.counts;
            assert_eq!([usage.allowed, usage.denied, usage.cost], [allowed, denied, cost]);
            let seen = [usage.first_seen, usage.last_seen].map(Timestamp::as_micros);
            assert_eq!(seen, [model.first_seen, model.last_seen]);
            assert_eq!(tally.intervals().collect::<Vec<_>>(), model.intervals, "{number}");
            assert_eq!(tally.notes(), model.notes, "{number}");
            let texts: usize =
                model.notes.iter().flat_map(|note| &note.text).map(|t| t.len()).sum();
            let allocated = tally.rest.as_ref().map_or(0, |rest| rest.texts.bytes());
            assert!((texts..=texts + 32 * size_of::<Box<str>>()).contains(&allocated), "{number}");
            assert_eq!(bytes, tally.bytes());
        }
        assert!(tally.notes.bytes() <= 20 * 16, "{}", tally.notes.bytes());
        for _ in 0..20 {
            let (key, time, answer) = (&b""[..], model.last_seen, NoteAnswer::Allowed);
            let decision = TrackedDecision { key, time, cost: 1, granted: 1, answer, note: None };
            tally.add(&many, &decision, &mut bytes);
        }
        assert_eq!(tally.rest.unwrap().texts.bytes(), 0);
    }

    #[test]
    fn without_notes_and_a_timeline_nothing_is_allocated() {
        let tracked = tracked("{ usage: true }");
        let (mut tally, mut bytes) = (Tally::new(0), 0);
        for (time, note) in [(0, None), (INTERVAL, Some("note")), (1, None)] {
            let (key, answer) = (&b""[..], NoteAnswer::Denied);
            let decision = TrackedDecision { key, time, cost: 1, granted: 0, answer, note };
            tally.add(&tracked, &decision, &mut bytes);
        }
        assert_eq!((tally.usage().denied, tally.notes(), bytes), (3, Vec::new(), 0));
        assert_eq!(tally.intervals().count(), 0);
    }

    /// A reload may also add a timeline, or remove it.
    #[test]
    fn totals_remain_if_the_timeline_changes() {
        let (without, with) = (tracked("{ usage: true }"), tracked("{ timeline: 5m by 1m }"));
        let mut tally = Tally::new(0);
        let mut count = |tracked, minute| tally.count(tracked, minute * INTERVAL, [1, 0, 2]);
        count(&without, 0);
        count(&with, 1);
        count(&without, 2);
        count(&with, 1);
        count(&with, 2);
        let starts: Vec<_> = tally.intervals().map(|i| i.start.as_micros() / INTERVAL).collect();
        assert_eq!((starts, tally.usage().cost), (vec![1, 2], 10));
        tally.clear_timeline();
        assert_eq!((tally.intervals().count(), tally.usage().cost), (0, 10));
        tally.count(&with, 3 * INTERVAL, [1, 0, 2]);
        assert_eq!((tally.intervals().count(), tally.usage().cost), (1, 12));
    }
}

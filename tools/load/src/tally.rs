//! What one thread has seen.

use hdrhistogram::Histogram;

use crate::answer::{Answer, ErrorKind};
use crate::clock::{Clock, Nanos};
use crate::verify::Admission;

/// The most admissions that are kept for their bounds to be checked, by all threads together.
pub const MAX_ADMISSIONS: usize = 2_000_000;

/// The longest latency that is told apart, an hour.
const MAX_LATENCY_NANOS: u64 = 3_600_000_000_000;

/// Counts of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many allowed.
    pub allowed: u64,
    /// How many denied.
    pub denied: u64,
}

impl Counts {
    fn add(&mut self, allowed: bool) {
        self.allowed += u64::from(allowed);
        self.denied += u64::from(!allowed);
    }

    fn merge(&mut self, other: Counts) {
        self.allowed += other.allowed;
        self.denied += other.denied;
    }

    /// Both together.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.allowed + self.denied
    }
}

/// Where the times of admissions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// Of the answers.
    Store,
    /// From when it was sent to its answer.
    Caller,
    /// When it was sent: the caller chose the window.
    Sent,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// From when a request was due to its answer, in ns.
    pub(crate) latency: Histogram<u64>,
    /// Of the limits, lists and blocks.
    pub(crate) answers: Counts,
    /// Of what stood in for a store that was away.
    pub(crate) degraded: Counts,
    pub(crate) sent: u64,
    pub(crate) errors: [u64; ErrorKind::ALL.len()],
    /// The first error of each kind, in words.
    pub(crate) samples: [Option<String>; ErrorKind::ALL.len()],
    pub(crate) admissions: Vec<Admission>,
    /// Admissions that there was no room for.
    pub(crate) unkept: u64,
    room: usize,
    stamps: Option<Stamps>,
}

/// A request that has got its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) key: u32,
    pub(crate) due: Nanos,
    pub(crate) sent: Nanos,
}

impl Tally {
    /// One that keeps so many admissions, if their times are wanted.
    pub(crate) fn new(stamps: Option<Stamps>, room: usize) -> Self {
        Tally {
            latency: histogram(),
            answers: Counts::default(),
            degraded: Counts::default(),
            sent: 0,
            errors: Default::default(),
            samples: Default::default(),
            admissions: Vec::new(),
            unkept: 0,
            room,
            stamps,
        }
    }

    /// Enters an answer; where it is an admission that is kept, its index.
    pub(crate) fn answer(
        &mut self,
        clock: &Clock,
        asked: Asked,
        now: Nanos,
        answer: &Answer,
    ) -> Option<usize> {
        self.latency.saturating_record(now.saturating_sub(asked.due).max(1));
        let counts = if answer.degraded { &mut self.degraded } else { &mut self.answers };
        counts.add(answer.allowed);
        if !answer.allowed || answer.degraded || !answer.by_limits {
            return None;
        }
        let admission = self.admission(clock, asked, now, answer)?;
        if self.admissions.len() >= self.room {
            self.unkept += 1;
            return None;
        }
        self.admissions.push(admission);
        Some(self.admissions.len() - 1)
    }

    fn admission(
        &self,
        clock: &Clock,
        asked: Asked,
        now: Nanos,
        answer: &Answer,
    ) -> Option<Admission> {
        let (from, to) = match (self.stamps?, answer.time) {
            (Stamps::Store, Some(time)) => {
                // The store's clock may run a little faster than ours.
                let took = now.saturating_sub(asked.sent) / 1_000 + 1;
                (time, time.saturating_add(took + took / 8 + 1))
            }
            (Stamps::Store, None) => return None,
            (Stamps::Sent, _) => (clock.wall_micros(asked.sent), clock.wall_micros(asked.sent)),
            (Stamps::Caller, _) => (clock.wall_micros(asked.sent), clock.wall_micros(now) + 1),
        };
        Some(Admission { delay: answer.delay, ..Admission::between(asked.key, from, to) })
    }

    /// Enters that a lease that was kept was given back, by the store's time.
    pub(crate) fn released(&mut self, admission: Option<usize>, time: Option<u64>) {
        let kept = admission.and_then(|admission| self.admissions.get_mut(admission));
        if let (Some(kept), Some(time)) = (kept, time) {
            kept.released = time;
        }
    }

    pub(crate) fn error(&mut self, kind: ErrorKind, times: u64, words: impl FnOnce() -> String) {
        let at = position(kind);
        if times > 0 {
            self.errors[at] += times;
            self.samples[at].get_or_insert_with(words);
        }
    }

    /// Takes in what another thread has seen.
    pub(crate) fn merge(&mut self, other: Tally) {
        // Both have the same bounds.
        let _ = self.latency.add(&other.latency);
        self.answers.merge(other.answers);
        self.degraded.merge(other.degraded);
        self.sent += other.sent;
        for (here, there) in self.errors.iter_mut().zip(other.errors) {
            *here += there;
        }
        for (here, there) in self.samples.iter_mut().zip(other.samples) {
            *here = here.take().or(there);
        }
        self.admissions.extend(other.admissions);
        self.unkept += other.unkept;
    }
}

fn position(kind: ErrorKind) -> usize {
    ErrorKind::ALL.iter().position(|x| *x == kind).unwrap_or(0)
}

/// Three digits of every latency up to an hour: some 250 kB.
#[expect(clippy::expect_used, reason = "the bounds are constants that it takes")]
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NANOS, 3).expect("the bounds are in range")
}

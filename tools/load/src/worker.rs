//! One thread's share of a run.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use tollgate::Id;

use crate::answer::{Answer, ErrorKind};
use crate::clock::{Clock, Nanos, nanos};
use crate::keys::Choice;
use crate::plan::{Load, Peer};
use crate::progress::Progress;
use crate::random::Random;
use crate::schedule::{Due, Schedule};
use crate::tally::{Asked, Stamps, Tally};

/// What the connections of one thread share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) clock: Clock,
    pub(crate) peer: Peer,
    pub(crate) patience: Duration,
    pub(crate) pipeline: usize,
    /// How long a lease is held, where there is one.
    pub(crate) hold: Option<Nanos>,
    schedule: Schedule,
    choice: Choice,
    random: RefCell<Random>,
    tally: RefCell<Tally>,
    /// Whether anybody has answered, and how many connections still try.
    has_answered: Cell<bool>,
    progress: Arc<Progress>,
}

impl Worker {
    pub(crate) fn new(share: &Share, clock: Clock, thread: usize) -> Self {
        let load = &share.load;
        let stream = u64::try_from(thread).unwrap_or(0);
        Worker {
            clock,
            peer: share.peer.clone(),
            patience: load.timeout,
            pipeline: load.pipeline.max(1),
            hold: load.hold.map(nanos),
            schedule: Schedule::new(load, thread),
            choice: share.choice.clone(),
            random: RefCell::new(Random::new(share.seed, stream)),
            tally: RefCell::new(Tally::new(share.stamps, share.room)),
            has_answered: Cell::new(false),
            progress: Arc::clone(&share.progress),
        }
    }

    /// Takes the next request: when it is due.
    pub(crate) fn take(&self) -> Option<Nanos> {
        self.take_at(self.clock.now())
    }

    pub(crate) fn take_at(&self, now: Nanos) -> Option<Nanos> {
        match self.schedule.take(now) {
            Due::At(due) => Some(due),
            Due::Never => None,
        }
    }

    pub(crate) fn choose(&self) -> u32 {
        self.choice.choose(&mut self.random.borrow_mut())
    }

    /// An id for a lease.
    pub(crate) fn draw_lease(&self) -> Id {
        let mut random = self.random.borrow_mut();
        Id::from_u128(u128::from(random.next()) << 64 | u128::from(random.next()))
    }

    /// Counts a request that goes out.
    pub(crate) fn sent(&self) {
        self.tally.borrow_mut().sent += 1;
    }

    pub(crate) fn answered(&self, asked: Asked, answer: &Answer) -> Option<usize> {
        self.has_answered.set(true);
        let counts = [u64::from(answer.allowed), u64::from(!answer.allowed)];
        self.progress.answered(counts);
        self.answered_at(asked, self.clock.now(), answer)
    }

    /// As [`Worker::answered`], without telling the progress.
    pub(crate) fn answered_at(&self, asked: Asked, now: Nanos, it: &Answer) -> Option<usize> {
        self.tally.borrow_mut().answer(&self.clock, asked, now, it)
    }

    pub(crate) fn tell(&self, counts: [u64; 2]) {
        self.progress.answered(counts);
    }

    pub(crate) fn released(&self, admission: Option<usize>, time: Option<u64>) {
        self.tally.borrow_mut().released(admission, time);
    }

    pub(crate) fn failed(&self, kind: ErrorKind, times: usize, words: impl FnOnce() -> String) {
        let times = u64::try_from(times).unwrap_or(u64::MAX);
        self.progress.failed(times);
        self.tally.borrow_mut().error(kind, times, words);
    }

    /// Whether there is nothing more to ask, so that a connection need not be made again.
    pub(crate) fn is_over(&self) -> bool {
        self.schedule.is_over(self.clock.now())
    }

    /// Whether an answer has come since the last time this was asked.
    pub(crate) fn take_answered(&self) -> bool {
        self.has_answered.take()
    }

    /// What was seen, and how many requests were due by now.
    pub(crate) fn finish(&self) -> (Tally, u64) {
        let due = self.schedule.due_by(self.clock.now());
        let nothing = Tally::new(None, 0);
        (self.tally.replace(nothing), due)
    }
}

/// What all threads share.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// Nobody, in process.
    pub(crate) peer: Peer,
    pub(crate) load: Load,
    pub(crate) choice: Choice,
    pub(crate) seed: u64,
    pub(crate) stamps: Option<Stamps>,
    /// How many admissions each thread keeps.
    pub(crate) room: usize,
    pub(crate) progress: Arc<Progress>,
}

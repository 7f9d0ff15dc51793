//! One thread's share of a run.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tollgate::Id;

use crate::clock::{Clock, Nanos, nanos};
use crate::keys::KeySelector;
use crate::plan::Load;
use crate::reply::{Decision, RequestError};
use crate::schedule::Schedule;
use crate::tally::{AdmissionTimes, Counts, Progress, SentRequest, Tally};

/// What all threads share.
#[derive(Clone, Debug)]
pub(crate) struct WorkerConfig {
    pub(crate) load: Load,
    pub(crate) selector: KeySelector,
    pub(crate) times: Option<AdmissionTimes>,
    /// How many admissions each thread keeps.
    pub(crate) max_admissions: usize,
    pub(crate) progress: Arc<Progress>,
}

/// What the connections of one thread share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) clock: Clock,
    pub(crate) timeout: Duration,
    pub(crate) pipeline: usize,
    /// How long to hold each lease, under a concurrent limit.
    pub(crate) hold: Option<Nanos>,
    schedule: Schedule,
    selector: KeySelector,
    random: RefCell<Rng>,
    tally: RefCell<Tally>,
    /// Whether a response arrived since the last call of `take_has_response`.
    has_response: Cell<bool>,
    progress: Arc<Progress>,
}

impl Worker {
    pub(crate) fn new(config: &WorkerConfig, clock: Clock, thread: usize, random: Rng) -> Self {
        let load = &config.load;
        Worker {
            clock,
            timeout: load.timeout,
            pipeline: load.pipeline.max(1),
            hold: load.hold.map(nanos),
            schedule: Schedule::new(load, thread),
            selector: config.selector.clone(),
            random: RefCell::new(random),
            tally: RefCell::new(Tally::new(config.times, config.max_admissions)),
            has_response: Cell::new(false),
            progress: Arc::clone(&config.progress),
        }
    }

    /// Takes the next request and returns when it is due.
    pub(crate) fn take(&self) -> Option<Nanos> {
        self.take_at(self.clock.now())
    }

    pub(crate) fn take_at(&self, now: Nanos) -> Option<Nanos> {
        self.schedule.take(now)
    }

    pub(crate) fn choose_key(&self) -> u32 {
        self.selector.choose(&mut self.random.borrow_mut())
    }

    pub(crate) fn new_lease_id(&self) -> Id {
        Id::from_u128(self.random.borrow_mut().u128(..))
    }

    /// Counts a request that is sent.
    pub(crate) fn count_sent(&self) {
        self.tally.borrow_mut().sent += 1;
    }

    /// Records a decision that arrived now; returns the index of its admission, if that is kept.
    pub(crate) fn record(&self, request: SentRequest, decision: &Decision) -> Option<usize> {
        self.has_response.set(true);
        self.progress.add(Counts::from(decision.allowed));
        self.record_at(request, self.clock.now(), decision)
    }

    /// Like [`Worker::record`], without updating the progress.
    pub(crate) fn record_at(
        &self,
        request: SentRequest,
        now: Nanos,
        decision: &Decision,
    ) -> Option<usize> {
        self.tally.borrow_mut().record(&self.clock, request, now, decision)
    }

    pub(crate) fn add_progress(&self, counts: Counts) {
        self.progress.add(counts);
    }

    pub(crate) fn record_release(&self, admission: Option<usize>, time: Option<u64>) {
        self.tally.borrow_mut().record_release(admission, time);
    }

    pub(crate) fn record_error(&self, error: RequestError) {
        self.record_errors(error, 1);
    }

    /// Records `count` requests that failed with the same error.
    pub(crate) fn record_errors(&self, error: RequestError, count: u64) {
        self.progress.add_failures(count);
        self.tally.borrow_mut().record_errors(error, count);
    }

    /// Whether no request is left, so that a connection need not be opened again.
    pub(crate) fn is_finished(&self) -> bool {
        self.schedule.is_finished(self.clock.now())
    }

    /// Whether a response arrived since the last call.
    pub(crate) fn take_has_response(&self) -> bool {
        self.has_response.take()
    }

    /// The tally, and the number of requests that were due by now.
    pub(crate) fn finish(&self) -> (Tally, u64) {
        let due = self.schedule.due_by(self.clock.now());
        (self.tally.replace(Tally::new(None, 0)), due)
    }
}

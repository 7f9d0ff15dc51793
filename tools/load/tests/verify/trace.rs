//! Random traces decided by the engine.

use proptest::prelude::*;
use tollgate::Limit;
use tollgate_algorithms::{
    Anomalies, CheckContext, Id, KeyState, Operation, Policy, Timestamp, decide,
};
use tollgate_load::verify::Admission;

/// The start of a window of every length below a week.
pub(crate) const START: u64 = 1_763_337_600_000_000;

/// Some requests: how time moves before them, and how a client observes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) moves: Move,
    /// How many µs before the decision the store read its clock.
    pub(crate) lag: u64,
    /// How many µs after the decision the response arrived.
    pub(crate) delay: u64,
    /// How many requests at the same time.
    pub(crate) repeat: usize,
    /// Which of the held leases is released before the requests.
    pub(crate) release: Option<prop::sample::Index>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    By(u64),
    /// By thousandths of the window, minus some µs.
    Window(u64, u64),
    /// To the next multiple of the window, or to one µs before it.
    Edge(u64),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let moves = prop_oneof![
        3 => Just(Move::Stay),
        2 => (1_u64..200).prop_map(Move::By),
        4 => (0_u64..1_200, 0_u64..3).prop_map(|(part, minus)| Move::Window(part, minus)),
        2 => (0_u64..2).prop_map(Move::Edge),
    ];
    let lag = prop_oneof![4 => Just(0), 1 => 0_u64..5, 1 => 0_u64..50_000];
    let delay = prop_oneof![4 => Just(0), 1 => 0_u64..5, 1 => 0_u64..50_000];
    let release = prop::option::weighted(0.3, any::<prop::sample::Index>());
    let step = (moves, lag, delay, 1_usize..30, release).prop_map(
        |(moves, lag, delay, repeat, release)| Step { moves, lag, delay, repeat, release },
    );
    prop::collection::vec(step, 1..60)
}

/// The requests of one key under some limits, and its admissions.
#[derive(Debug)]
pub(crate) struct Trace {
    policy: Policy,
    cost: u64,
    state: KeyState,
    now: u64,
    held: Vec<(Id, usize)>,
    next: u128,
    pub(crate) admissions: Vec<Admission>,
    /// The engine's times of each admitted request and of its response.
    pub(crate) round_trips: Vec<(u64, u64)>,
}

impl Trace {
    pub(crate) fn new(limits: &[Limit], cost: u64) -> Self {
        let policy = Policy::new("p", limits.iter().copied()).unwrap();
        let (state, held) = (KeyState::default(), Vec::new());
        let (admissions, round_trips) = (Vec::new(), Vec::new());
        Trace { policy, cost, state, now: START, held, next: 1, admissions, round_trips }
    }

    pub(crate) fn run(&mut self, steps: &[Step]) {
        for step in steps {
            self.advance(step.moves);
            if let Some(index) = step.release.filter(|_| !self.held.is_empty()) {
                let (lease, admission) = self.held.remove(index.index(self.held.len()));
                let time = self.now - step.lag;
                self.decide(&Operation::Release { lease }, time);
                self.admissions[admission].released = time;
            }
            for _ in 0..step.repeat {
                self.request(step.lag, step.delay);
            }
        }
    }

    pub(crate) fn advance(&mut self, moves: Move) {
        let window = self.policy.limits()[0].spec().window.get();
        self.now += match moves {
            Move::Stay => 0,
            Move::By(by) => by,
            Move::Window(part, minus) => (window / 1_000 * part).saturating_sub(minus),
            Move::Edge(before) => self.now.next_multiple_of(window) - self.now + 1 - before,
        };
    }

    /// Makes one request; returns whether it was admitted.
    pub(crate) fn request(&mut self, lag: u64, delay: u64) -> bool {
        let lease = Id::from_u128(self.next);
        self.next += 1;
        let time = self.now - lag;
        let is_lease = self.policy.has_concurrent();
        let operation = Operation::Check { lease: is_lease.then_some(lease) };
        let (allowed, wait) = self.decide(&operation, time);
        if allowed {
            let admission = Admission::between(0, time, self.now + delay);
            let released = if is_lease { u64::MAX } else { 0 };
            self.held.extend(is_lease.then_some((lease, self.admissions.len())));
            self.admissions.push(Admission { delay: wait, released, ..admission });
            self.round_trips.push((time, self.now + delay));
        }
        allowed
    }

    fn decide(&mut self, operation: &Operation, time: u64) -> (bool, u64) {
        let mut block = None;
        let cost = if matches!(operation, Operation::Release { .. }) { 0 } else { self.cost };
        let check =
            CheckContext { policy: &self.policy, state: &mut self.state, block: &mut block, cost };
        let now = Timestamp::from_micros(time);
        let decision = decide(operation, &mut [check], now, &mut Anomalies::default()).remove(0);
        (decision.allowed && decision.granted > 0, decision.delay.get())
    }
}

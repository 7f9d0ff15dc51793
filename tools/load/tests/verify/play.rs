//! Traces that the engine decides.

use proptest::prelude::*;
use tollgate::Limit;
use tollgate_core::{Anomalies, CheckContext, Id, KeyState, Operation, Policy, Timestamp, decide};
use tollgate_load::verify::Admission;

/// The start of a window of whatever is shorter than a week.
pub(crate) const START: u64 = 1_763_337_600_000_000;

/// One request: how the time moves before it, and how it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) moves: Move,
    /// How many µs before its decision the store read its clock.
    pub(crate) lag: u64,
    /// How many µs after it the answer came.
    pub(crate) late: u64,
    /// How many at once.
    pub(crate) times: usize,
    /// Which of the leases that are held is released first, if any.
    pub(crate) release: Option<prop::sample::Index>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    By(u64),
    /// So many thousandths of the window, and so many µs less.
    Window(u64, u64),
    /// To one µs before the next multiple of the window, or to it.
    Edge(u64),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let moves = prop_oneof![
        3 => Just(Move::Stay),
        2 => (1_u64..200).prop_map(Move::By),
        4 => (0_u64..1_200, 0_u64..3).prop_map(|(part, less)| Move::Window(part, less)),
        2 => (0_u64..2).prop_map(Move::Edge),
    ];
    let lag = prop_oneof![4 => Just(0), 1 => 0_u64..5, 1 => 0_u64..50_000];
    let late = prop_oneof![4 => Just(0), 1 => 0_u64..5, 1 => 0_u64..50_000];
    let release = prop::option::weighted(0.3, any::<prop::sample::Index>());
    let step = (moves, lag, late, 1_usize..30, release)
        .prop_map(|(moves, lag, late, times, release)| Step { moves, lag, late, times, release });
    prop::collection::vec(step, 1..60)
}

/// One key under some limits, and what was admitted to it.
#[derive(Debug)]
pub(crate) struct Played {
    policy: Policy,
    cost: u64,
    state: KeyState,
    now: u64,
    held: Vec<(Id, usize)>,
    next: u128,
    pub(crate) admissions: Vec<Admission>,
    /// What an admission is told by: when it was asked and when answered, by a clock of its own.
    pub(crate) seen: Vec<(u64, u64)>,
}

impl Played {
    pub(crate) fn new(limits: &[Limit], cost: u64) -> Self {
        let policy = Policy::new("p", limits.iter().copied()).unwrap();
        let (state, held) = (KeyState::default(), Vec::new());
        let (admissions, seen) = (Vec::new(), Vec::new());
        Played { policy, cost, state, now: START, held, next: 1, admissions, seen }
    }

    pub(crate) fn play(&mut self, steps: &[Step]) {
        for step in steps {
            self.advance(step.moves);
            if let Some(index) = step.release.filter(|_| !self.held.is_empty()) {
                let (lease, admission) = self.held.remove(index.index(self.held.len()));
                let told = self.now - step.lag;
                self.decide(&Operation::Release { lease }, told);
                self.admissions[admission].released = told;
            }
            for _ in 0..step.times {
                self.ask(step.lag, step.late);
            }
        }
    }

    pub(crate) fn advance(&mut self, moves: Move) {
        let window = self.policy.limits()[0].spec().window.get();
        self.now += match moves {
            Move::Stay => 0,
            Move::By(by) => by,
            Move::Window(part, less) => (window / 1_000 * part).saturating_sub(less),
            Move::Edge(before) => self.now.next_multiple_of(window) - self.now + 1 - before,
        };
    }

    /// Asks once; whether it was admitted.
    pub(crate) fn ask(&mut self, lag: u64, late: u64) -> bool {
        let lease = Id::from_u128(self.next);
        self.next += 1;
        let told = self.now - lag;
        let is_lease = self.policy.has_concurrent();
        let verb = Operation::Check { lease: is_lease.then_some(lease) };
        let (allowed, delay) = self.decide(&verb, told);
        if allowed {
            let admission = Admission::between(0, told, self.now + late);
            let released = if is_lease { u64::MAX } else { 0 };
            self.held.extend(is_lease.then_some((lease, self.admissions.len())));
            self.admissions.push(Admission { delay, released, ..admission });
            self.seen.push((told, self.now + late));
        }
        allowed
    }

    fn decide(&mut self, verb: &Operation, told: u64) -> (bool, u64) {
        let mut block = None;
        let cost = if matches!(verb, Operation::Release { .. }) { 0 } else { self.cost };
        let slot =
            CheckContext { policy: &self.policy, state: &mut self.state, block: &mut block, cost };
        let now = Timestamp::from_micros(told);
        let decision = decide(verb, &mut [slot], now, &mut Anomalies::default()).remove(0);
        (decision.allowed && decision.granted > 0, decision.delay.get())
    }
}

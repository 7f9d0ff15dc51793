//! Random limits and traces, and a key to play them on.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tollgate_core::{
    Anomalies, Block, CheckContext, Cost, Decision, Id, KeyState, Limit, Micros, Operation, Policy,
    Timestamp, decide_one,
};

/// Deterministic cases.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(20_261_120);
    ProptestConfig { rng_seed, failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// A Friday that is not at the edge of any window.
pub(crate) const START: Timestamp = Timestamp::from_micros(1_763_650_000_123_457);

/// A key under a policy.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) policy: Policy,
    pub(crate) state: KeyState,
    block: Option<Block>,
    leases: u128,
}

impl Key {
    pub(crate) fn new(policy: &Policy) -> Self {
        Key { policy: policy.clone(), state: KeyState::default(), block: None, leases: 0 }
    }

    pub(crate) fn decide(&mut self, operation: Operation, cost: u64, now: Timestamp) -> Decision {
        let Key { policy, state, block, .. } = self;
        let mut slot = CheckContext { policy, state, block, cost };
        decide_one(&operation, &mut slot, now, &mut Anomalies::default())
    }

    pub(crate) fn check(&mut self, cost: u64, now: Timestamp) -> Decision {
        self.leases += 1;
        let lease = self.policy.has_concurrent().then(|| Id::from_u128(self.leases));
        self.decide(Operation::Check { lease }, cost, now)
    }

    pub(crate) fn peek(&self, cost: u64, now: Timestamp) -> Decision {
        self.clone().decide(Operation::Peek, cost, now)
    }
}

/// A step of a trace: a delay and a cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) later: Micros,
    pub(crate) cost: u64,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let later = prop_oneof![Just(0), 0_u64..400, 0_u64..4_000, 0_u64..40_000];
    let cost = prop_oneof![4 => Just(1_u64), 2 => 0_u64..4, 1 => 1_u64..25];
    let step = (later, cost).prop_map(|(us, cost)| Step { later: Micros::new(us), cost });
    prop::collection::vec(step, 1..60)
}

/// A limit with small numbers of any kind except concurrency.
pub(crate) fn limit() -> impl Strategy<Value = String> {
    let window = prop_oneof![Just(1_u64), Just(2), Just(6), Just(10), Just(60)];
    (1_u64..20, window, 0..9_u8, 1_u64..25).prop_map(|(count, ms, kind, other)| {
        let rate = format!("{count}/{ms}ms");
        let precision = if ms % 2 == 0 { ms / 2 } else { ms };
        match kind {
            0 => rate,
            1 => format!("{rate} burst {other}"),
            2 => format!("{rate} fixed"),
            3 => format!("{rate} fixed from-first"),
            4 => format!("{rate} log"),
            5 => format!("{rate} sliding"),
            6 => format!("{rate} sliding by {precision}ms"),
            7 => format!("{rate} sliding by {precision}ms strict"),
            _ => format!("{rate} queue {other}"),
        }
    })
}

/// A limit of any kind, including concurrency.
pub(crate) fn any_limit() -> impl Strategy<Value = String> {
    let concurrent =
        (1_u64..6, 1_u64..20).prop_map(|(n, ms)| format!("{n} concurrent lease {ms}ms"));
    prop_oneof![6 => limit(), 1 => concurrent]
}

/// One to three limits.
pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let limits = prop::collection::vec(any_limit(), 1..4);
    limits.prop_map(|x| x.join("; ").parse().unwrap())
}

/// An admitted cost, and when the request may proceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(crate) at: u64,
    pub(crate) departs: u64,
    pub(crate) cost: u64,
}

/// Plays a trace on a new key of one limit.
pub(crate) fn play(limit: &Limit, steps: &[Step]) -> Vec<Admitted> {
    let mut key = Key::new(&Policy::new("p", [*limit]).unwrap());
    let (mut now, mut admitted) = (START, Vec::new());
    for step in steps {
        now = now.saturating_add(step.later);
        let decision = key.check(step.cost, now);
        if decision.allowed && step.cost > 0 {
            let at = now.as_micros();
            admitted.push(Admitted { at, departs: at + decision.delay.get(), cost: step.cost });
        }
    }
    admitted
}

/// Clamps a cost to the range of [`Cost`].
pub(crate) fn cost(units: u64) -> u64 {
    Cost::new(units).unwrap().get()
}

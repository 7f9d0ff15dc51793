//! Runs a property over many cases and counts what they saw.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::model::Expected;

/// How many cases, from which seed. The same plan always runs the same cases.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many cases are run.
    pub cases: u32,
    /// Where their numbers begin.
    pub seed: u8,
}

/// What the cases of a property saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Cases that ran to their end.
    pub cases: u64,
    /// Decisions that admitted.
    pub admitted: u64,
    /// Decisions that denied.
    pub denied: u64,
    /// Requests that could not be decided, and were not.
    pub refused: u64,
    /// Whatever else a property counts, by name.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Seen {
    /// Counts the decisions of one request.
    pub(crate) fn answer(&mut self, answer: &[Expected]) {
        for decision in answer {
            if decision.allowed {
                self.admitted += 1;
            } else {
                self.denied += 1;
            }
        }
    }

    /// Counts one of what the property calls `name`.
    pub(crate) fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// How many of `name` were counted.
    #[must_use]
    pub fn counted(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

/// A property that does not hold: why, and the least case that shows it.
#[derive(Clone, Debug)]
pub struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// Why one case does not hold.
pub(crate) type Why = String;

/// Runs `check` on every case of the plan.
pub(crate) fn run<S: Strategy>(
    plan: Plan,
    cases: &S,
    check: impl FnMut(S::Value, &mut Seen) -> Result<(), Why>,
) -> Result<Seen, Broken> {
    let config = Config {
        cases: plan.cases,
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[plan.seed; 32]);
    let state = RefCell::new((check, Seen::default()));
    let outcome = TestRunner::new_with_rng(config, rng).run(cases, |case| {
        let (check, seen) = &mut *state.borrow_mut();
        check(case, seen).map_err(TestCaseError::fail)?;
        seen.cases += 1;
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(state.into_inner().1),
        // What the property says is the case; the numbers that made it would only repeat it.
        Err(TestError::Fail(why, _)) => Err(Broken(why.to_string())),
        Err(error) => Err(Broken(error.to_string())),
    }
}

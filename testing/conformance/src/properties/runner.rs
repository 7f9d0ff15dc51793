//! Runs a property over many cases and counts their coverage.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::model::Expected;

/// The number of cases and the seed. The same plan always runs the same cases.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of cases.
    pub cases: u32,
    /// The seed of the random numbers.
    pub seed: u8,
}

/// The coverage of the cases of a property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The cases that passed.
    pub cases: u64,
    /// The admissions.
    pub admitted: u64,
    /// The denials.
    pub denied: u64,
    /// The requests that were rejected as invalid.
    pub rejected: u64,
    /// Other counts of a property, by name.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
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

    /// Increments the count of this name.
    pub(crate) fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// The count of this name.
    #[must_use]
    pub fn counted(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

/// A violated property, with the reason and the smallest failing case.
#[derive(Clone, Debug)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// The reason why a case fails.
pub(crate) type FailureReason = String;

/// Runs `check` on every case of the plan.
pub(crate) fn run<S: Strategy>(
    plan: Plan,
    cases: &S,
    check: impl FnMut(S::Value, &mut Coverage) -> Result<(), FailureReason>,
) -> Result<Coverage, Violation> {
    let config = Config {
        cases: plan.cases,
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[plan.seed; 32]);
    let state = RefCell::new((check, Coverage::default()));
    let outcome = TestRunner::new_with_rng(config, rng).run(cases, |case| {
        let (check, coverage) = &mut *state.borrow_mut();
        check(case, coverage).map_err(TestCaseError::fail)?;
        coverage.cases += 1;
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(state.into_inner().1),
        // The reason describes the case; the generated numbers would repeat it.
        Err(TestError::Fail(why, _)) => Err(Violation(why.to_string())),
        Err(error) => Err(Violation(error.to_string())),
    }
}

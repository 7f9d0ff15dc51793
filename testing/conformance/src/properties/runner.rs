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

impl Plan {
    /// Returns a plan with this number of cases, or with that of the environment variable
    /// `TOLLGATE_CASES`.
    ///
    /// # Panics
    /// The variable is not a number.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a misspelt number must not run fewer cases")]
    pub fn new(cases: u32, seed: u8) -> Self {
        let from_environment = std::env::var("TOLLGATE_CASES").ok();
        let number = |text: String| text.parse().expect("TOLLGATE_CASES is a number");
        Plan { cases: from_environment.map_or(cases, number), seed }
    }
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

/// The coverage of a property that holds, or its violation.
pub type Outcome = Result<Coverage, Violation>;

/// Asserts that a property holds, and that its cases covered admissions, denials and `counts`.
///
/// # Panics
/// The property is violated, or its coverage is insufficient.
#[track_caller]
#[expect(clippy::panic, clippy::print_stdout, reason = "an assertion of tests")]
pub fn assert_holds(plan: Plan, counts: &[&str], outcome: Outcome) {
    let coverage = outcome.unwrap_or_else(|violation| panic!("{violation}"));
    println!("{coverage:?}");
    assert_eq!(coverage.cases, u64::from(plan.cases), "all cases ran");
    assert!(coverage.admitted > 0 && coverage.denied > 0, "{coverage:?}");
    for name in counts {
        assert!(coverage.counts.contains_key(name), "no {name}: {coverage:?}");
    }
}

/// The reason why a case fails.
pub(crate) type FailureReason = String;

/// Runs `check` on every case of the plan.
pub(crate) fn run<S: Strategy>(
    plan: Plan,
    cases: &S,
    check: impl FnMut(S::Value, &mut Coverage) -> Result<(), FailureReason>,
) -> Outcome {
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

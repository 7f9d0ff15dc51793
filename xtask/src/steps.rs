//! A run of several steps: each is announced and timed, none is skipped because another failed.

use std::time::Duration;

use anyhow::Result;

use crate::process::Stopwatch;
use crate::tally::Tally;

/// What the steps so far came to.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    taken: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    took: Duration,
    tally: Tally,
    failure: Option<String>,
}

impl Steps {
    /// Takes a step that runs no tests.
    pub(crate) fn take(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        self.take_tests(name, |_| work());
    }

    /// Takes a step whose work counts its tests.
    pub(crate) fn take_tests(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Tally) -> Result<()>,
    ) {
        println!("\n== {name}");
        let stopwatch = Stopwatch::start();
        let mut tally = Tally::default();
        let failure = work(&mut tally).err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            eprintln!("{name}: {failure}");
        }
        self.taken.push(Step { name, took: stopwatch.elapsed(), tally, failure });
    }

    pub(crate) fn all_passed(&self) -> bool {
        self.taken.iter().all(|step| step.failure.is_none() && step.tally.failed == 0)
    }

    /// The tests of all steps. A step that failed without a failed test (it did not compile, an
    /// arrow points up) counts as one, so that "0 failed" never stands under a run that failed.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for step in &self.taken {
            sum += step.tally;
            if step.failure.is_some() && step.tally.failed == 0 {
                sum.failed += 1;
            }
        }
        sum
    }

    /// A line for each step.
    pub(crate) fn summary(&self) -> String {
        let mut summary = String::from("\n== summary\n");
        for step in &self.taken {
            summary += &step.line();
            summary.push('\n');
        }
        summary
    }
}

impl Step {
    fn line(&self) -> String {
        let Self { name, took, tally, failure } = self;
        let verdict = if failure.is_none() { "ok" } else { "FAILED" };
        let mut line = format!("{verdict:<7} {:>5} s  {name}", took.as_secs());
        if !tally.is_empty() {
            line += &format!(": {} passed, {} failed", tally.passed, tally.failed);
        }
        if let Some(failure) = failure {
            line += &format!(": {}", failure.lines().next().unwrap_or_default());
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failed_step_counts_once_and_stops_nothing() {
        let mut steps = Steps::default();
        steps.take("format", || Ok(()));
        assert!(steps.all_passed());
        steps.take("directions", || bail!("an arrow points up"));
        steps.take_tests("tests", |tally| {
            *tally = Tally { passed: 7, failed: 2 };
            bail!("cargo test ended with 101")
        });
        assert!(!steps.all_passed());
        assert_eq!(steps.tally(), Tally { passed: 7, failed: 3 });
        assert!(steps.summary().contains("directions: an arrow points up"), "{}", steps.summary());
        assert!(steps.summary().contains("tests: 7 passed, 2 failed"), "{}", steps.summary());
    }
}

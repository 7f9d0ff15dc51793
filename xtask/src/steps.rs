//! Runs several steps, prints the name and the time of each, and continues after a failure.

use std::time::Duration;

use anyhow::Result;

use crate::process::Stopwatch;
use crate::tally::Tally;

/// The steps that have run.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// The name of the only step to run.
    only: Option<String>,
    finished: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    elapsed: Duration,
    tally: Tally,
    failure: Option<String>,
}

impl Steps {
    /// Runs only the step of this name, or all.
    pub(crate) fn only(only: Option<String>) -> Self {
        Self { only, finished: Vec::new() }
    }

    /// Whether no step has run: none has the name.
    pub(crate) fn is_empty(&self) -> bool {
        self.finished.is_empty()
    }

    /// Runs a step without tests.
    pub(crate) fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        self.run_tests(name, |_| work());
    }

    /// Runs a step that counts its tests.
    pub(crate) fn run_tests(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Tally) -> Result<()>,
    ) {
        if self.only.as_deref().is_some_and(|only| only != name) {
            return;
        }
        println!("\n== {name}");
        let stopwatch = Stopwatch::start();
        let mut tally = Tally::default();
        let failure = work(&mut tally).err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            eprintln!("{name}: {failure}");
        }
        self.finished.push(Step { name, elapsed: stopwatch.elapsed(), tally, failure });
    }

    /// Adds the steps that ran on another thread.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.finished.append(&mut others.finished);
    }

    pub(crate) fn all_passed(&self) -> bool {
        self.finished.iter().all(|step| step.failure.is_none() && step.tally.failed == 0)
    }

    /// The tests of all steps. A step that fails without a failed test, such as a compile error,
    /// counts as one failed test, so that a failed run never prints "0 failed".
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for step in &self.finished {
            sum += step.tally;
            if step.failure.is_some() && step.tally.failed == 0 {
                sum.failed += 1;
            }
        }
        sum
    }

    /// One line per step.
    pub(crate) fn summary(&self) -> String {
        let mut summary = String::from("\n== summary\n");
        for step in &self.finished {
            summary += &step.line();
            summary.push('\n');
        }
        summary
    }
}

impl Step {
    fn line(&self) -> String {
        let Self { name, elapsed, tally, failure } = self;
        let verdict = if failure.is_none() { "ok" } else { "FAILED" };
        let mut line = format!("{verdict:<7} {:>5} s  {name}", elapsed.as_secs());
        if !tally.is_empty() {
            line += &format!(": {} passed, {} failed", tally.passed, tally.failed);
        }
        if let Some(failure) = failure {
            // An error may have no text.
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
    fn failed_step_counts_as_one_failed_test_and_later_steps_run() {
        let mut steps = Steps::default();
        steps.run("format", || Ok(()));
        assert!(steps.all_passed());
        steps.run("links", || bail!("no such heading"));
        steps.run_tests("tests", |tally| {
            *tally = Tally { passed: 7, failed: 2 };
            bail!("cargo test ended with 101")
        });
        assert!(!steps.all_passed());
        assert_eq!(steps.tally(), Tally { passed: 7, failed: 3 });
        assert!(steps.summary().contains("links: no such heading"), "{}", steps.summary());
        assert!(steps.summary().contains("tests: 7 passed, 2 failed"), "{}", steps.summary());
    }

    #[test]
    fn other_steps_than_the_chosen_one_do_not_run() {
        let mut steps = Steps::only(Some("links".to_owned()));
        steps.run("format", || bail!("runs"));
        assert!(steps.is_empty());
        steps.run("links", || Ok(()));
        assert!(!steps.is_empty() && steps.all_passed());
    }
}

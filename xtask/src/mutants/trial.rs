//! Tries one patch: whether it applies, compiles, and makes a test fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::patch::{Patch, TestCommand};
use super::scratch::Scratch;
use crate::process::{self, Exit, Stopwatch};
use crate::tally::Tally;

/// Compiling has no time limit.
const NO_LIMIT: Duration = Duration::MAX;
/// A patched run that takes this many times as long as the unpatched one counts as hung.
const HANG_FACTOR: u32 = 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A test failed, or hung.
    Caught(String),
    /// Every test passed.
    Missed(String),
    /// The patch does not apply or does not compile.
    Stale(String),
}

impl Verdict {
    pub(super) fn is_caught(&self) -> bool {
        matches!(self, Self::Caught(_))
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Caught(_) => "caught",
            Self::Missed(_) => "MISSED",
            Self::Stale(_) => "STALE",
        }
    }

    pub(super) fn details(&self) -> Option<&str> {
        let (Self::Caught(details) | Self::Missed(details) | Self::Stale(details)) = self;
        (!details.is_empty()).then_some(details)
    }
}

/// The commands that pass on the unpatched copy, and how long each takes.
#[derive(Debug)]
pub(super) struct Baseline {
    min_hang_time: Duration,
    passed: Vec<(TestCommand, Duration)>,
}

impl Baseline {
    pub(super) fn new(min_hang_time: Duration) -> Self {
        Self { min_hang_time, passed: Vec::new() }
    }

    /// Checks once that `command` passes on the unpatched copy; otherwise a failure on the patched
    /// copy would prove nothing.
    pub(super) fn measure(&mut self, scratch: &Scratch, command: &TestCommand) -> Result<()> {
        if self.passed.iter().any(|(known, _)| known == command) {
            return Ok(());
        }
        println!("$ {command}   (unpatched)");
        let log = scratch.logs.join("unpatched.log");
        let build = command.build(&scratch.tree, &scratch.build);
        if process::run_within(build, &log, NO_LIMIT)? != Exit::Succeeded {
            bail!("the unpatched copy does not compile:\n{}", tail(&log));
        }
        let stopwatch = Stopwatch::start();
        let run = command.run(&scratch.tree, &scratch.build);
        if process::run_within(run, &log, NO_LIMIT)? != Exit::Succeeded {
            bail!("the unpatched copy does not pass:\n{}", tail(&log));
        }
        let elapsed = stopwatch.elapsed();
        let tally = Tally::from_output(&read(&log));
        ensure!(tally.passed > 0, "`{command}` runs no test");
        self.passed.push((command.clone(), elapsed));
        Ok(())
    }

    /// How long `command` may take on a patched copy before it counts as hung. The limit derives
    /// from the unpatched run on the same machine, so that a slow machine does not look like a
    /// hang.
    #[expect(clippy::expect_used, reason = "`measure` runs before `try_patch`")]
    fn limit(&self, command: &TestCommand) -> Duration {
        let unpatched = self.passed.iter().find(|(known, _)| known == command);
        let (_, elapsed) = unpatched.expect("each command is measured before its patches");
        elapsed.saturating_mul(HANG_FACTOR).max(self.min_hang_time)
    }
}

pub(super) fn try_patch(scratch: &Scratch, patch: &Patch, baseline: &Baseline) -> Result<Verdict> {
    let verdict = match scratch.apply(patch) {
        Ok(()) => judge(scratch, patch, baseline),
        Err(why) => Ok(Verdict::Stale(format!("does not apply: {why:#}"))),
    };
    scratch.revert(patch)?;
    verdict
}

fn judge(scratch: &Scratch, patch: &Patch, baseline: &Baseline) -> Result<Verdict> {
    let log: PathBuf = scratch.logs.join(format!("{}.log", patch.name));
    let build = patch.command.build(&scratch.tree, &scratch.build);
    if process::run_within(build, &log, NO_LIMIT)? != Exit::Succeeded {
        return Ok(Verdict::Stale(format!("does not compile:\n{}", first_error(&log))));
    }
    let limit = baseline.limit(&patch.command);
    let run = || {
        let run = patch.command.run(&scratch.tree, &scratch.build);
        process::run_within(run, &log, limit)
    };
    let mut exit = run()?;
    // No test ran: another build held the lock of the target folder.
    while exit == Exit::TimedOut && !read(&log).contains("running ") {
        exit = run()?;
    }
    Ok(match exit {
        Exit::Succeeded => Verdict::Missed(format!("every test of `{}` passed", patch.command)),
        Exit::Failed => Verdict::Caught(failed_tests(&read(&log))),
        Exit::TimedOut => Verdict::Caught(format!("hung for {} s", limit.as_secs())),
    })
}

/// The first failed test and the number of others, from the indented list below the last
/// `failures:` of the harness.
fn failed_tests(output: &str) -> String {
    // A process that crashed prints no list.
    let (_, list) = output.rsplit_once("\nfailures:\n").unwrap_or_default();
    let names: Vec<&str> = list
        .lines()
        .map_while(|line| line.strip_prefix("    "))
        .filter(|name| !name.is_empty())
        .collect();
    match names.as_slice() {
        [] => String::new(),
        [name] => format!("by {name}"),
        [name, others @ ..] => format!("by {name} and {} more", others.len()),
    }
}

fn first_error(log: &Path) -> String {
    let text = read(log);
    let from_error = text.lines().skip_while(|line| !line.starts_with("error"));
    from_error.take(8).collect::<Vec<_>>().join("\n")
}

fn read(log: &Path) -> String {
    // The output of a test may contain any bytes.
    match fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("cannot read {}: {error}", log.display()),
    }
}

fn tail(log: &Path) -> String {
    let text = read(log);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_failed_test_is_named() {
        let output = "running 3 tests\n.FF\nfailures:\n\n---- rows::a stdout ----\npanicked\n    at a.rs\n\n\
            failures:\n    rows::a\n    rows::b\n\ntest result: FAILED. 1 passed; 2 failed\n";
        assert_eq!(failed_tests(output), "by rows::a and 1 more");
        assert_eq!(failed_tests("\nfailures:\n    rows::a\n\ntest result"), "by rows::a");
        assert_eq!(failed_tests("process didn't exit successfully (signal: 6, SIGABRT)"), "");
    }
}

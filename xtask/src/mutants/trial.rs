//! One patch on trial: does it still apply, does it compile, do the tests notice?

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::patch::{Patch, TestCommand};
use super::scratch::Scratch;
use crate::process::{self, Ended, Stopwatch};
use crate::tally::Tally;

/// Compiling may take as long as it likes.
const NO_LIMIT: Duration = Duration::MAX;
/// A patched run that takes this many times as long as the unpatched one hangs.
const HUNG: u32 = 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A test failed, or hung.
    Caught(String),
    /// Every test passed.
    Missed(String),
    /// It proves nothing any more: it does not apply, or does not compile.
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
    patience: Duration,
    proved: Vec<(TestCommand, Duration)>,
}

impl Baseline {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, proved: Vec::new() }
    }

    /// Proves that `command` passes on the unpatched copy, once: else a failure on the patched one
    /// would prove nothing.
    pub(super) fn prove(&mut self, scratch: &Scratch, command: &TestCommand) -> Result<()> {
        if self.proved.iter().any(|(known, _)| known == command) {
            return Ok(());
        }
        println!("$ {command}   (unpatched)");
        let log = scratch.logs.join("unpatched.log");
        let build = command.build(&scratch.tree, &scratch.build);
        if process::run_within(build, &log, NO_LIMIT)? != Ended::Succeeded {
            bail!("the unpatched copy does not compile:\n{}", tail(&log));
        }
        let stopwatch = Stopwatch::start();
        let run = command.run(&scratch.tree, &scratch.build);
        if process::run_within(run, &log, NO_LIMIT)? != Ended::Succeeded {
            bail!("the unpatched copy does not pass:\n{}", tail(&log));
        }
        let took = stopwatch.elapsed();
        let tally = Tally::of(&read(&log));
        ensure!(tally.passed > 0, "`{command}` runs no test");
        self.proved.push((command.clone(), took));
        Ok(())
    }

    /// How long `command` may take on a patched copy before it counts as hung. It is measured
    /// against the same command on the same machine minutes before, so a slow machine does not look
    /// like a hang.
    fn limit(&self, command: &TestCommand) -> Duration {
        let took = self.proved.iter().find(|(known, _)| known == command).map(|(_, took)| *took);
        took.unwrap_or_default().saturating_mul(HUNG).max(self.patience)
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
    if process::run_within(build, &log, NO_LIMIT)? != Ended::Succeeded {
        return Ok(Verdict::Stale(format!("does not compile:\n{}", first_error(&log))));
    }
    let limit = baseline.limit(&patch.command);
    let run = patch.command.run(&scratch.tree, &scratch.build);
    Ok(match process::run_within(run, &log, limit)? {
        Ended::Succeeded => Verdict::Missed(format!("every test of `{}` passed", patch.command)),
        Ended::Failed => Verdict::Caught(failed_tests(&read(&log))),
        Ended::OutOfTime => Verdict::Caught(format!("hung for {} s", limit.as_secs())),
    })
}

/// The first test that failed, and how many more: the harness lists them, indented, under its last
/// `failures:`.
fn failed_tests(output: &str) -> String {
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
    // What a test printed need not be text.
    fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn tail(log: &Path) -> String {
    let text = read(log);
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(25)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_that_noticed_is_named() {
        let output = "running 3 tests\n.FF\nfailures:\n\n---- rows::a stdout ----\npanicked\n    at a.rs\n\n\
            failures:\n    rows::a\n    rows::b\n\ntest result: FAILED. 1 passed; 2 failed\n";
        assert_eq!(failed_tests(output), "by rows::a and 1 more");
        assert_eq!(failed_tests("\nfailures:\n    rows::a\n\ntest result"), "by rows::a");
        assert_eq!(failed_tests("process didn't exit successfully (signal: 6, SIGABRT)"), "");
    }
}

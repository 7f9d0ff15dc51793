//! `cargo xtask test`: everything that a contributor runs before sending a change.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::steps::Steps;
use crate::tally::Tally;
use crate::{Subcommand, directions, mutants, needs, process, repository, tidy};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "test",
    usage: "[--fast]",
    about: "all tests; fast leaves out loom, crashes and mutants",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let fast = arguments.flag("--fast");
    arguments.finish()?;
    let root = repository::root();
    needs::git()?;
    needs::redis_server()?;
    needs::promtool()?;
    needs::curl()?;
    needs::wrk()?;
    needs::openssl()?;
    let mut skipped = needs::Skipped::default();
    needs::gateways(&root, &mut skipped)?;
    needs::clients(&root, &mut skipped)?;

    let mut steps = Steps::default();
    steps.take("tidy", || tidy::check(&root));
    steps.take("directions", || directions::check(&root));
    steps.take_tests("tests", |tally| count(workspace(&root), tally));
    steps.take_tests("traces", |tally| count(traces(&root), tally));
    steps.take_tests("documentation tests", |tally| count(documentation(&root), tally));
    if !fast {
        steps.take_tests("loom", |tally| count(loom(&root), tally));
        steps.take_tests("crashes", |tally| count(crashes(&root), tally));
        steps.take("mutants", || mutants::check(&root, ""));
    }
    print!("{}{}", steps.summary(), skipped.summary());
    let tally = steps.tally();
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a test command in view and counts its tests. One that runs none has proved nothing.
fn count(command: Command, tally: &mut Tally) -> Result<()> {
    process::read_lines(command, |line| tally.read(line))?;
    ensure!(!tally.is_empty(), "no test ran");
    Ok(())
}

fn workspace(root: &Path) -> Command {
    let mut test = process::cargo(root, "test");
    test.args(["--workspace", "--all-targets", "--no-fail-fast"]);
    test
}

/// What only a feature builds, which the workspace's tests leave out.
fn traces(root: &Path) -> Command {
    let mut test = process::cargo(root, "test");
    test.args(["--package", "tollgate-cli", "--features", "otlp", "--bins", "--test", "traces"]);
    test
}

fn documentation(root: &Path) -> Command {
    let mut test = process::cargo(root, "test");
    test.args(["--workspace", "--doc", "--no-fail-fast"]);
    test
}

/// Every interleaving of the table's threads. Its flags would rebuild all else, so it has a target
/// folder of its own.
fn loom(root: &Path) -> Command {
    let mut test = process::cargo(root, "test");
    test.args(["--package", "tollgate-store", "--release", "--test", "loom"]);
    test.args(["--target-dir", "target/loom"]).env("RUSTFLAGS", "--cfg loom");
    test
}

/// Kills a process in the middle of its snapshots, a hundred times.
fn crashes(root: &Path) -> Command {
    let mut test = process::cargo(root, "test");
    test.args(["--package", "tollgate-store", "--release", "--test", "crash"]);
    test.env("TOLLGATE_CRASHES", "100");
    test
}

//! `cargo xtask test`: all tests.

use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::{self, available_parallelism};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::steps::Steps;
use crate::tally::Tally;
use crate::{Subcommand, bench, deps, mutants, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "test",
    usage: "[--fast | --peers]",
    about: "all tests; --fast skips loom, the fresh project, hot paths and mutants; --peers runs only those with \
            Traefik, Tomcat, envoyproxy/ratelimit, Jedis and Helm, which it installs",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let fast = arguments.flag("--fast");
    let peers = arguments.flag("--peers");
    arguments.finish()?;
    let root = repository::root();
    if peers {
        return test_peers(&root);
    }
    deps::programs(&["git", "promtool", "curl", "wrk", "openssl", "tmux"])?;
    deps::redis_server()?;
    let mut skipped = deps::Skipped::default();
    deps::gateways(&root, &mut skipped)?;
    deps::clients(&root, &mut skipped)?;
    deps::path_servers(&mut skipped);
    deps::note_missing_peers(&root, &mut skipped);
    skipped.note_unless_ci("the tests in network namespaces", deps::programs(&["ip"]))?;

    let mut steps = Steps::default();
    steps.run_tests("tests", |tally| test_workspace(&root, tally));
    if !fast {
        // A mutant keeps one core busy most of the time.
        thread::scope(|scope| {
            let mutants = scope.spawn(|| {
                let mut steps = Steps::default();
                steps.run("mutants", || mutants::check(&root, ""));
                steps
            });
            test_other_builds(&root, &mut steps);
            let hot_paths = bench::check_hot_paths(&root, &mut steps, &mut skipped);
            steps.append(mutants.join().unwrap_or_else(|panic| resume_unwind(panic)));
            hot_paths
        })?;
    }
    Ok(report(&steps, &skipped))
}

/// With the feature `otlp`: a second build without it would take minutes. `cargo xtask check` compiles the
/// default features.
const WORKSPACE: &str = "--workspace --features tollgate-cli/otlp";

/// The tests of the workspace in parts of about the same time, and how many tests of each run at a time for
/// each core. Those of gateways wait most of the time.
const PARTS: [(&str, usize); 5] = [
    ("--lib --bins --test [!a-r]*", 1),
    ("--test [a-e]*", 1),
    ("--test [fh-r]*", 1),
    ("--test g*", 2),
    ("--doc", 1),
];

/// The variable with the number of tests that run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Runs all parts at the same time: most tests wait for servers, and Cargo starts one binary after another.
fn test_workspace(root: &Path, tally: &mut Tally) -> Result<()> {
    process::run(cargo_test(root, &format!("{WORKSPACE} --no-run")))?;
    let cores = available_parallelism().map_or(1, usize::from);
    let part = |(targets, per_core): &(_, usize)| {
        let mut test = cargo_test(root, &format!("{WORKSPACE} --no-fail-fast {targets}"));
        if std::env::var_os(THREADS).is_none() {
            test.env(THREADS, (per_core * cores).to_string());
        }
        test
    };
    // The second names a test that hangs.
    let ends = |line: &str| line.starts_with("test result:") || line.contains("has been running");
    let parts = PARTS.iter().map(part).collect();
    process::read_lines_of_all(parts, ends, |line| tally.read(line))?;
    ensure!(!tally.is_empty(), "no test ran");
    Ok(())
}

/// The tests that need other features or flags than those of the workspace, or compile a project.
fn test_other_builds(root: &Path, steps: &mut Steps) {
    let mut run = |name, command| steps.run_tests(name, |tally| count(command, tally));
    // All others have TLS, which the daemon enables.
    run("Redis without TLS", cargo_test(root, "--package tollgate --features redis --lib url"));
    run("loom", loom(root));
    run("fresh project", fresh_project(root));
}

/// The tests with programs that take minutes to install.
fn test_peers(root: &Path) -> Result<ExitCode> {
    deps::redis_server()?;
    let mut skipped = deps::Skipped::default();
    let mut steps = Steps::default();
    for peer in &deps::PEERS {
        let installed = (peer.install)(root);
        if installed.is_ok() {
            let arguments = format!("{WORKSPACE} {}", peer.tests);
            let command = cargo_test(root, &arguments);
            steps.run_tests(peer.name, |tally| count(command, tally));
        }
        skipped.note(&format!("the tests with {}", peer.name), installed);
    }
    Ok(report(&steps, &skipped))
}

fn report(steps: &Steps, skipped: &deps::Skipped) -> ExitCode {
    print!("{}{}", steps.summary(), skipped.summary());
    let tally = steps.tally();
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a test command and counts its tests. A command that runs no test is an error.
fn count(command: Command, tally: &mut Tally) -> Result<()> {
    process::read_lines(command, |line| tally.read(line))?;
    ensure!(!tally.is_empty(), "no test ran");
    Ok(())
}

/// `cargo test` with arguments that are separated by spaces.
fn cargo_test(root: &Path, arguments: &str) -> Command {
    let mut test = process::cargo(root, "test");
    test.args(arguments.split(' '));
    test
}

/// Explores all interleavings of threads in the memory store's table. There are few, so that a build
/// that is not optimised takes less time in all.
fn loom(root: &Path) -> Command {
    let mut test = cargo_test(root, "--package tollgate-state --profile dev --test loom");
    test.env("RUSTFLAGS", "--cfg loom");
    test
}

/// Follows the README of the middleware in a new project, which is compiled from scratch.
fn fresh_project(root: &Path) -> Command {
    cargo_test(root, &format!("{WORKSPACE} --test fresh_project -- --ignored"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_integration_test_is_in_one_part() {
        let patterns = PARTS.iter().filter_map(|(targets, _)| targets.split_once("--test "));
        for (_, pattern) in patterns.clone() {
            assert!(!pattern.contains(' '), "{pattern}");
        }
        let cases: String =
            patterns.map(|(_, one)| format!("case $x in {one}) echo $x;; esac; ")).collect();
        let mut shell = Command::new("sh");
        let names = "a b c d e f g h i j k l m n o p q r s t u v w x y z A Z 0 9 _";
        shell.args(["-c", &format!("for x in {names}; do {cases} done")]);
        let matched = process::output(shell).unwrap();
        assert_eq!(matched.split_whitespace().collect::<Vec<_>>().join(" "), names);
    }
}

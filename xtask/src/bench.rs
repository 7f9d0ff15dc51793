//! `cargo xtask bench`: runs the benchmarks of the packages `bench` and `hot-paths`.

use std::path::{self, Path};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::deps::Skipped;
use crate::steps::Steps;
use crate::{Subcommand, deps, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    usage: "[GROUP] [--quick] [--json FILE]",
    about: "compares the costs with those of other rate limiters; also hot_paths, bytes and redis-tables",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let root = repository::root();
    let json: Option<String> = arguments.value("--json")?;
    let is_quick = arguments.flag("--quick");
    let name = arguments.positional();
    arguments.finish()?;
    if name.as_deref() == Some("hot_paths") {
        ensure!(json.is_none() && !is_quick, "hot_paths has no options");
        deps::programs(&["taskset", "valgrind"])?;
        process::run(hot_paths(&root))?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = if name.as_deref() == Some("bytes") { "bytes" } else { "compare" };
    if program == "compare" {
        deps::redis_server()?;
        deps::programs(&["redis-cli", "taskset", "wrk"])?;
        let mut build = process::cargo(&root, "build");
        // The profile of the benchmarks, so that the common dependencies are built once.
        build.args(["--profile", "bench", "--package", "tollgate-cli"]);
        process::run(build)?;
    }
    let mut bench = process::cargo(&root, "bench");
    bench.args(["--package", "bench", "--bench", program, "--"]);
    bench.args(name.as_deref().filter(|_| program == "compare"));
    bench.args(is_quick.then_some("--quick"));
    if let Some(file) = json {
        // The program runs in another folder.
        bench.arg("--json").arg(path::absolute(file)?);
    }
    process::run(bench)?;
    Ok(ExitCode::SUCCESS)
}

/// A package without the other limiters, which would be compiled with it.
fn hot_paths(root: &Path) -> Command {
    let mut run = process::cargo(root, "run");
    run.args(["--profile", "bench", "--package", "hot-paths"]);
    run
}

/// Compares the instructions of the hot paths with the recorded ones. Skipped without valgrind, and
/// on an architecture without recorded counts.
pub(crate) fn check_hot_paths(root: &Path, steps: &mut Steps, skipped: &mut Skipped) -> Result<()> {
    let recorded = format!("bench/hot_paths/{}.txt", std::env::consts::ARCH);
    let is_recorded = root.join(&recorded).is_file();
    let is_recorded = is_recorded.then_some(()).with_context(|| {
        format!("{recorded} does not exist; UPDATE=1 cargo xtask bench hot_paths writes it")
    });
    if is_recorded.is_err() {
        skipped.note(SKIPPED_COUNTS, is_recorded);
        return Ok(());
    }
    let programs = deps::programs(&["taskset", "valgrind"]);
    if programs.is_err() {
        return skipped.note_unless_ci(SKIPPED_COUNTS, programs);
    }
    steps.run("hot paths", || process::run(hot_paths(root)));
    Ok(())
}

const SKIPPED_COUNTS: &str = "the comparison of instructions of the hot paths";

//! `cargo xtask fuzz`: runs the fuzz targets for a limited time.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::{Subcommand, deps, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "fuzz",
    usage: "[TARGET] [--seconds N]",
    about: "fuzz one target, or each in turn, for N seconds (60)",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let seconds = arguments.value("--seconds")?.unwrap_or(60_u32);
    let target = arguments.positional();
    arguments.finish()?;
    let root = repository::root();
    deps::programs(&["c++"])?;
    deps::cargo_fuzz(&root)?;

    let mut list = fuzz(&root);
    list.arg("list");
    let mut targets: Vec<String> = process::output(list)?.lines().map(String::from).collect();
    if let Some(target) = target {
        ensure!(
            targets.contains(&target),
            "no fuzz target {target}; expected one of {}",
            targets.join(", ")
        );
        targets = vec![target];
    }
    for target in targets {
        process::run(fuzz_target(&root, &target, seconds)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn fuzz_target(root: &Path, target: &str, seconds: u32) -> Result<Command> {
    let folder = root.join("fuzz");
    let mut run = fuzz(root);
    // The code has no unsafe blocks, so sanitizers would find little at half the speed.
    run.args(["run", "--sanitizer", "none", target]);
    let seeds = folder.join("seeds").join(target);
    if seeds.is_dir() {
        // New inputs are written to the first folder.
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        run.args([corpus, seeds]);
    }
    run.args(["--", &format!("-max_total_time={seconds}")]);
    let words = folder.join(target).with_extension("dict");
    if words.is_file() {
        run.arg(format!("-dict={}", words.display()));
    }
    Ok(run)
}

/// `cargo fuzz` on the stable toolchain, with the unstable compiler flags that it passes enabled.
fn fuzz(root: &Path) -> Command {
    let mut fuzz = process::cargo(root, "fuzz");
    fuzz.env("RUSTC_BOOTSTRAP", "1");
    fuzz
}

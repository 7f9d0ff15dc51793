//! `cargo xtask bench`: the benchmarks, in the package `bench`.

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::{Subcommand, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    usage: "[NAME] […]",
    about: "one benchmark, or all; what follows goes to it",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let mut bench = process::cargo(&repository::root(), "bench");
    bench.args(["--package", "bench"]);
    if let Some(name) = arguments.positional() {
        bench.args(["--bench", &name]);
    }
    bench.arg("--").args(arguments.rest());
    process::run(bench)?;
    Ok(ExitCode::SUCCESS)
}

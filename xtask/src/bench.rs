//! `cargo xtask bench`: runs the benchmarks of the package `bench`.

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::{Subcommand, deps, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    usage: "[NAME] […]",
    about: "one benchmark, or all; passes further arguments on",
    run,
};

/// Benchmarks that run the daemon from the target folder.
const DAEMONS: &[&str] = &["resp", "grpc"];

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let root = repository::root();
    let name = arguments.positional();
    if name.as_deref().is_none_or(|name| DAEMONS.contains(&name)) {
        deps::redis_server()?;
        deps::redis_cli()?;
        deps::taskset()?;
        let mut build = process::cargo(&root, "build");
        // The profile of the benchmarks, so that the common dependencies are built once.
        build.args(["--profile", "bench", "--package", "tollgate-cli"]);
        process::run(build)?;
    }
    let mut bench = process::cargo(&root, "bench");
    bench.args(["--package", "bench"]);
    if let Some(name) = name {
        bench.args(["--bench", &name]);
    }
    bench.arg("--").args(arguments.rest());
    process::run(bench)?;
    Ok(ExitCode::SUCCESS)
}

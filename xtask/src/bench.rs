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

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let root = repository::root();
    let name = arguments.positional();
    let runs = |names: &[&str]| name.as_deref().is_none_or(|name| names.contains(&name));
    if runs(&["redis", "resp"]) {
        deps::redis_server()?;
    }
    if runs(&["resp"]) {
        deps::programs(&["redis-cli"])?;
    }
    if runs(&["grpc", "resp"]) {
        deps::programs(&["taskset"])?;
        let mut build = process::cargo(&root, "build");
        // The profile of the benchmarks, so that the common dependencies are built once.
        build.args(["--profile", "bench", "--package", "tollgate-cli"]);
        process::run(build)?;
    }
    let mut bench = process::cargo(&root, "bench");
    bench.args(["--package", "bench"]);
    if let Some(name) = &name {
        bench.args(["--bench", name]);
    }
    bench.arg("--").args(arguments.rest());
    process::run(bench)?;
    Ok(ExitCode::SUCCESS)
}

//! `cargo xtask bench`: the benchmarks, in the package `bench`.

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::{Subcommand, needs, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    usage: "[NAME] […]",
    about: "one benchmark, or all; what follows goes to it",
    run,
};

/// Those that run the daemon itself, which they find in the target folder.
const DAEMONS: &[&str] = &["resp", "grpc"];

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let root = repository::root();
    let name = arguments.positional();
    if name.as_deref().is_none_or(|name| DAEMONS.contains(&name)) {
        needs::redis_server()?;
        needs::redis_cli()?;
        needs::taskset()?;
        let mut build = process::cargo(&root, "build");
        // The profile of benchmarks, which is that of a release but for line tables, so that what
        // both depend on is built once.
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

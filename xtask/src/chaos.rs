//! `cargo xtask chaos`: faults of real stores, with the release binary.

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::{Subcommand, deps, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "chaos",
    usage: "[--long]",
    about: "faults of real stores under load; UPDATE=1 writes the table of docs/reliability.md",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let long = arguments.flag("--long");
    arguments.finish()?;
    deps::redis_server()?;
    let mut test = process::cargo(&repository::root(), "test");
    test.args(["--package", "tollgate-cli", "--release", "--test", "chaos"]);
    test.args(["--", "--ignored", "--exact", "table", "--nocapture"]);
    if long {
        test.env("TOLLGATE_CHAOS", "long");
    }
    process::run(test)?;
    Ok(ExitCode::SUCCESS)
}

//! `cargo xtask simulate`: runs the simulations with many seeds.

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::{Subcommand, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "simulate",
    usage: "[--seeds N] [--seed N]",
    about: "simulate Redis servers, leases and their faults with N seeds (10000), or with one seed",
    run,
};

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let seeds = arguments.value("--seeds")?.unwrap_or(10_000_u64);
    let seed: Option<u64> = arguments.value("--seed")?;
    arguments.finish()?;
    for simulation in [
        &["tollgate-simulator", "--test", "cross_slot", "--test", "outage", "--"][..],
        &["tollgate", "--features", "redis", "--lib", "--", "leases::simulation"],
    ] {
        let mut test = process::cargo(&repository::root(), "test");
        test.args(["--release", "--package"]).args(simulation).arg("--nocapture");
        match seed {
            Some(seed) => test.env("SEED", seed.to_string()),
            None => test.env("TOLLGATE_SEEDS", seeds.to_string()),
        };
        process::run(test)?;
    }
    Ok(ExitCode::SUCCESS)
}

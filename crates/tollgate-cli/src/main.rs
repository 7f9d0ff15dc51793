//! The tool `tollgate`: the daemon, and what an operator asks it.

mod arguments;
mod check;
mod completions;
mod config;
mod health;
mod init;
mod man;
mod output;
mod serve;
mod url;

use std::process::ExitCode;

use clap::Parser;
use tollgate_server::ConfigErrors;

use crate::arguments::{Arguments, Command};

/// What every failure exits with; a denial is 1.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Serve(it) => serve::run(it),
        Command::Check(it) => check::run(&it),
        Command::Health(it) => health::run(&it),
        Command::Config(it) => config::run(&it),
        Command::Init(it) => init::run(&it),
        Command::Completions(it) => completions::run(&it),
        Command::Man(it) => man::run(&it),
    };
    done.unwrap_or_else(|error| {
        match error.downcast_ref::<ConfigErrors>() {
            Some(errors) => output::complain(&errors.report()),
            None => output::complain(&format!("error: {error:#}\n")),
        }
        ExitCode::from(FAILURE)
    })
}

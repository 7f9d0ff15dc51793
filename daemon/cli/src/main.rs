//! The tool `tollgate`: the daemon, and what an operator asks it.

mod arguments;
mod bench;
mod check;
mod completions;
mod config;
mod health;
mod init;
mod man;
mod number;
mod output;
mod ratelimit;
mod replay;
mod serve;
mod url;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tollgate_server::ConfigErrors;

use crate::arguments::{Arguments, Command, RatelimitAlone};

/// What this program is called where it stands in for envoyproxy/ratelimit.
const RATELIMIT: &str = "ratelimit";

/// What every failure exits with; a denial is 1.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let done = match command() {
        Command::Serve(value) => serve::run(value),
        Command::Check(value) => check::run(&value),
        Command::Bench(value) => bench::run(&value),
        Command::Ratelimit(value) => ratelimit::run(&value),
        Command::Health(value) => health::run(&value),
        Command::Config(value) => config::run(&value),
        Command::Init(value) => init::run(&value),
        Command::Replay(value) => replay::run(&value),
        Command::Completions(value) => completions::run(&value),
        Command::Man(value) => man::run(&value),
    };
    done.unwrap_or_else(|error| {
        match error.downcast_ref::<ConfigErrors>() {
            Some(errors) => output::complain(&errors.report()),
            None => output::complain(&format!("error: {error:#}\n")),
        }
        ExitCode::from(FAILURE)
    })
}

fn command() -> Command {
    let name = std::env::args_os().next().map(PathBuf::from);
    if name
        .as_ref()
        .and_then(|name| name.file_name())
        .is_some_and(|file_name| file_name == RATELIMIT)
    {
        return Command::Ratelimit(RatelimitAlone::parse().it);
    }
    Arguments::parse().command
}

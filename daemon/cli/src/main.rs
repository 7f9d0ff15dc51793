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
        Command::Serve(it) => serve::run(it),
        Command::Check(it) => check::run(&it),
        Command::Bench(it) => bench::run(&it),
        Command::Ratelimit(it) => ratelimit::run(&it),
        Command::Health(it) => health::run(&it),
        Command::Config(it) => config::run(&it),
        Command::Init(it) => init::run(&it),
        Command::Replay(it) => replay::run(&it),
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

fn command() -> Command {
    let name = std::env::args_os().next().map(PathBuf::from);
    if name.as_ref().and_then(|it| it.file_name()).is_some_and(|it| it == RATELIMIT) {
        return Command::Ratelimit(RatelimitAlone::parse().it);
    }
    Arguments::parse().command
}

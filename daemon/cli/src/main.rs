//! The binary `tollgate`: the daemon and its command line tools.

mod arguments;
mod bench;
mod check;
mod client;
mod command;
mod config;
mod explain;
mod health;
mod init;
mod number;
mod observe;
mod operate;
mod output;
mod ratelimit;
mod replay;
mod serve;
mod subject;
mod top;
mod usage;

use std::process::ExitCode;

use tollgate_daemon::ConfigErrors;

use crate::check::Mode;
use crate::command::Command;

/// mimalloc serves threads from heaps of their own, and returns freed memory to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code of every failure; 1 is a denial.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let command = Command::parse();
    let is_json = match &command {
        Command::Serve(arguments) => serve::logs_json(arguments),
        Command::Ratelimit(_) => ratelimit::logs_json(),
        _ => false,
    };
    let result = match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Check(arguments) => check::run(&arguments, Mode::Check),
        Command::Peek(arguments) => check::run(&arguments.check, Mode::Peek),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Inspect(arguments) => operate::inspect(&arguments.operation),
        Command::Keys(arguments) => usage::keys(&arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Observe(arguments) => observe::run(&arguments),
        Command::Block(arguments) => operate::block(&arguments),
        Command::Unblock(arguments) => operate::unblock(&arguments.operation),
        Command::Reset(arguments) => operate::reset(&arguments.operation),
        Command::Refund(arguments) => operate::refund(&arguments.operation, arguments.cost),
        Command::Penalize(arguments) => operate::penalize(&arguments.operation, arguments.cost),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Ratelimit(arguments) => ratelimit::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::Init(arguments) => init::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Completions(arguments) => command::print_completions(&arguments),
        Command::Man(arguments) => command::print_man(&arguments),
    };
    result.unwrap_or_else(|error| {
        match error.downcast_ref::<ConfigErrors>() {
            _ if is_json => serve::log_fatal(&error),
            Some(errors) => output::print_error(&errors.report()),
            None => output::print_error(&format!("error: {error:#}\n")),
        }
        ExitCode::from(FAILURE)
    })
}

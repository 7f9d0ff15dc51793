//! The command line, and the completions and manual pages that derive from it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::arguments::{
    Block, Check, Config, Explain, Health, Init, Inspect, KeysArguments, Peek, Penalize, Ratelimit,
    Refund, Reset, Serve, Unblock,
};
use crate::bench::Bench;
use crate::observe::Observe;
use crate::output;
use crate::replay::arguments::Replay;
use crate::top::Top;

/// Exact rate limiting: run the daemon, check a key, replay a log or load-test a limit
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Check(Check),
    Peek(Peek),
    Explain(Explain),
    Inspect(Inspect),
    Keys(KeysArguments),
    Top(Top),
    Observe(Observe),
    Block(Block),
    Unblock(Unblock),
    Reset(Reset),
    Refund(Refund),
    Penalize(Penalize),
    Bench(Box<Bench>),
    Ratelimit(Ratelimit),
    Health(Health),
    Config(Config),
    Init(Init),
    Replay(Replay),
    Completions(Completions),
    Man(Man),
}

/// Print shell completions
///
/// For bash: tollgate completions bash > ~/.local/share/bash-completion/completions/tollgate
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

/// Print the manual page, or write the pages of all commands
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Write a page for each command into this directory instead of printing one
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// Tollgate as a replacement for envoyproxy/ratelimit, configured by its environment variables
///
/// Provides the same ports, limit files or xDS, health, debug pages and metrics. Variables of
/// Tollgate are not read.
#[derive(Debug, Parser)]
#[command(name = "ratelimit", version)]
struct RatelimitArguments {
    #[command(flatten)]
    arguments: Ratelimit,
}

/// The binary's name as a replacement for envoyproxy/ratelimit.
const RATELIMIT: &str = "ratelimit";

impl Command {
    /// Parses the arguments of this process; exits if they are invalid.
    pub(crate) fn parse() -> Self {
        let program = std::env::args_os().next().map(PathBuf::from);
        let name = program.as_ref().and_then(|program| program.file_name());
        if name.is_some_and(|name| name == RATELIMIT) {
            Self::Ratelimit(RatelimitArguments::parse().arguments)
        } else {
            Arguments::parse().command
        }
    }
}

pub(crate) fn print_completions(arguments: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "tollgate", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_man(arguments: &Man) -> Result<ExitCode> {
    match &arguments.write {
        Some(directory) => write_man(directory)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            output::print(&String::from_utf8(page)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_man(directory: &Path) -> Result<()> {
    clap_mangen::generate_to(Arguments::command(), directory).with_context(|| {
        let directory = directory.display();
        format!("cannot write pages to {directory}; set --write to an existing directory")
    })
}

//! `cargo xtask`: all automation of Tollgate. Each subcommand is a module with a `SUBCOMMAND`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a terminal program prints its results"
)]

mod arguments;
mod bench;
mod book;
mod chaos;
mod check;
mod deps;
mod fuzz;
mod mutants;
mod no_std;
mod package;
mod process;
mod published;
mod release;
mod repository;
mod simulate;
mod steps;
mod tally;
mod test;
mod tidy;

use std::process::ExitCode;

use arguments::Arguments;

/// A subcommand of `cargo xtask`.
struct Subcommand {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    /// Returns `Ok(FAILURE)` if it has printed what failed, and an error if `main` should.
    run: fn(Arguments) -> anyhow::Result<ExitCode>,
}

const SUBCOMMANDS: &[Subcommand] = &[
    test::SUBCOMMAND,
    check::SUBCOMMAND,
    tidy::SUBCOMMAND,
    mutants::SUBCOMMAND,
    fuzz::SUBCOMMAND,
    simulate::SUBCOMMAND,
    chaos::SUBCOMMAND,
    bench::SUBCOMMAND,
    book::SUBCOMMAND,
    release::SUBCOMMAND,
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let is_help = |word: &String| ["help", "--help", "-h"].contains(&word.as_str());
    let name = args.next().unwrap_or_else(|| "help".to_owned());
    if is_help(&name) || args.peek().is_some_and(is_help) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(subcommand) = SUBCOMMANDS.iter().find(|known| known.name == name) else {
        eprint!("unknown subcommand {name}\n\n{}", usage());
        return ExitCode::FAILURE;
    };
    match (subcommand.run)(Arguments::new(args)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask SUBCOMMAND\n\n");
    for subcommand in SUBCOMMANDS {
        let call = format!("{} {}", subcommand.name, subcommand.usage);
        text += &format!("  {call:<32} {}\n", subcommand.about);
    }
    text
}

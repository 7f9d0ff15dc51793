//! `cargo xtask`: all automation of Tollgate, in Rust. Each subcommand is a file that offers one
//! `SUBCOMMAND`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a terminal program: what it prints is what it is for"
)]

mod arguments;
mod bench;
mod check;
mod directions;
mod fuzz;
mod mutants;
mod needs;
mod no_std;
mod process;
mod repository;
mod steps;
mod tally;
mod test;
mod tidy;

use std::process::ExitCode;

use arguments::Arguments;

/// One thing that `cargo xtask` can do.
struct Subcommand {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    /// `Ok(FAILURE)` is a run that told by itself what is wrong; an error is still to be printed.
    run: fn(Arguments) -> anyhow::Result<ExitCode>,
}

const SUBCOMMANDS: &[Subcommand] = &[
    test::SUBCOMMAND,
    check::SUBCOMMAND,
    directions::SUBCOMMAND,
    tidy::SUBCOMMAND,
    mutants::SUBCOMMAND,
    fuzz::SUBCOMMAND,
    bench::SUBCOMMAND,
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "help".to_owned());
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(subcommand) = SUBCOMMANDS.iter().find(|known| known.name == name) else {
        eprint!("unknown subcommand {name}\n\n{}", usage());
        return ExitCode::FAILURE;
    };
    match (subcommand.run)(Arguments::new(words)) {
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

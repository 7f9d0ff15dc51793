//! `tollgate completions`: what a shell completes, by the command line's own definition.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};
use crate::output;

pub(crate) fn run(arguments: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "tollgate", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

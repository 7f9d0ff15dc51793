//! `tollgate ratelimit`: in the place of envoyproxy/ratelimit, by its own environment variables.

mod answers;
mod environment;
mod greeting;
mod listing;
mod mode;
mod serving;
mod sources;
mod store;
mod tracing;
mod value;
mod variables;
mod xds;

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Ratelimit;
use crate::output;
use environment::Environment;
use mode::Mode;

pub(crate) fn run(arguments: &Ratelimit) -> Result<ExitCode> {
    if arguments.variables {
        output::print(&listing::text())?;
        return Ok(ExitCode::SUCCESS);
    }
    Mode::read(Environment::of(std::env::vars_os()))?.run()
}

//! `tollgate ratelimit`: a replacement for envoyproxy/ratelimit, configured by its environment
//! variables.

mod decisions;
mod environment;
mod greeting;
mod listing;
mod replacement;
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
use replacement::Replacement;

pub(crate) fn run(arguments: &Ratelimit) -> Result<ExitCode> {
    if arguments.variables {
        output::print(&listing::text())?;
        return Ok(ExitCode::SUCCESS);
    }
    Replacement::read(Environment::from_vars(std::env::vars_os()))?.run()
}

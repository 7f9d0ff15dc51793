//! `tollgate health`: checks whether the daemon is ready, for health checks that run a program.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hyper::StatusCode;

use crate::arguments::Health;
use crate::client::{Client, Reply};
use crate::output;

/// The exit code if the daemon responds and is not ready.
const NOT_READY: u8 = 1;

pub(crate) fn run(arguments: &Health) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = &arguments.daemon.url;
    let client = Client::new(&arguments.daemon)?;
    match runtime.block_on(client.status("/readyz"))? {
        Reply::Response(StatusCode::OK) => {
            output::print("ready\n")?;
            Ok(ExitCode::SUCCESS)
        }
        Reply::Response(status) => {
            output::print_error(&format!("{url} is not ready: /readyz returns {status}\n"));
            Ok(ExitCode::from(NOT_READY))
        }
        Reply::Unreachable(error) => {
            bail!("cannot connect to {url}: {error}; start a daemon with tollgate serve")
        }
    }
}

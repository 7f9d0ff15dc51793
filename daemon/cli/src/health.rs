//! `tollgate health`: checks whether the daemon is ready, for health checks that run a program.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use http_body_util::Full;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::arguments::Health;
use crate::client::{authority, send};
use crate::output;

/// The time limit of the request.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The exit code if the daemon responds and is not ready.
const NOT_READY: u8 = 1;

pub(crate) fn run(arguments: &Health) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = &arguments.url;
    let response = runtime.block_on(async { timeout(TIMEOUT, request_status(url)).await });
    match response.map_err(|_| anyhow!("{url} does not respond within {TIMEOUT:?}"))?? {
        StatusCode::OK => output::print("ready\n").map(|()| ExitCode::SUCCESS).map_err(Into::into),
        status => {
            output::print_error(&format!("{url} is not ready: /readyz returns {status}\n"));
            Ok(ExitCode::from(NOT_READY))
        }
    }
}

async fn request_status(url: &str) -> Result<StatusCode> {
    let authority = authority(url)?;
    let unreachable =
        |error| anyhow!("cannot connect to {url}: {error}; start a daemon with tollgate serve");
    let stream = TcpStream::connect(&authority).await.map_err(unreachable)?;
    let request = Request::get("/readyz").header(HOST, authority).body(Full::default())?;
    Ok(send(stream, request).await?.status())
}

//! `tollgate health`: whether the daemon is ready, for those who can only run a program.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::arguments::Health;
use crate::output;
use crate::url::authority;

/// How long it has to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What one that is there and not ready exits with.
const UNREADY: u8 = 1;

pub(crate) fn run(arguments: &Health) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = &arguments.url;
    let asked = runtime.block_on(async { timeout(PATIENCE, ask(url)).await });
    match asked.map_err(|_| anyhow!("{url} gives no answer in {PATIENCE:?}"))?? {
        StatusCode::OK => output::print("ready\n").map(|()| ExitCode::SUCCESS).map_err(Into::into),
        status => {
            output::complain(&format!("{url} is not ready: it answers {status} at /readyz\n"));
            Ok(ExitCode::from(UNREADY))
        }
    }
}

async fn ask(url: &str) -> Result<StatusCode> {
    let authority = authority(url)?;
    let unreachable = |error| anyhow!("nobody is at {url}: {error}; start one with tollgate serve");
    let stream = TcpStream::connect(&authority).await.map_err(unreachable)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::get("/readyz").header(HOST, authority).body(Empty::<Bytes>::new())?;
    let status = sender.send_request(request).await?.status();
    connection.abort();
    Ok(status)
}

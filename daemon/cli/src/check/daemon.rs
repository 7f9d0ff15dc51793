//! Checks with a daemon over HTTP.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::request::CheckRequest;
use crate::url::authority;

/// The result of a request to a daemon.
#[derive(Debug)]
pub(super) enum Response {
    /// The decision, as JSON.
    Decision(String),
    /// No daemon is reachable, with the error.
    Unreachable(String),
}

/// The time limit for connecting and for the response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Sends the check to the daemon at a URL.
pub(super) async fn check(url: &str, request: &CheckRequest) -> Result<Response> {
    let authority = authority(url)?;
    let stream = match timeout(TIMEOUT, TcpStream::connect(&authority)).await {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => return Ok(Response::Unreachable(error.to_string())),
        Err(_) => return Ok(Response::Unreachable(format!("no response within {TIMEOUT:?}"))),
    };
    let response = timeout(TIMEOUT, send(stream, &authority, request)).await;
    let (status, body) = response
        .map_err(|_| anyhow!("{url} accepted the request and did not respond within {TIMEOUT:?}"))?
        .with_context(|| format!("the server at {url} is not tollgate"))?;
    if status == StatusCode::OK {
        return Ok(Response::Decision(body));
    }
    match serde_json::from_str::<Problem>(&body) {
        Ok(problem) => Err(anyhow!("{}", problem.detail)),
        Err(_) => Err(anyhow!("the server at {url} is not tollgate: status {status}")),
    }
}

async fn send(
    stream: TcpStream,
    authority: &str,
    check: &CheckRequest,
) -> Result<(StatusCode, String)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::post(check.path())
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(check.json())))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
    let body = body.map_err(|error| anyhow!("{error}"))?.to_bytes();
    connection.abort();
    Ok((status, String::from_utf8(body.into())?))
}

/// An error response.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

//! Checks with a daemon over HTTP.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::request::CheckRequest;
use crate::client::{authority, send};

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

/// Sends the check to the daemon at a URL.
pub(super) async fn check(url: &str, request: &CheckRequest) -> Result<Response> {
    let authority = authority(url)?;
    let stream = match timeout(TIMEOUT, TcpStream::connect(&authority)).await {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => return Ok(Response::Unreachable(error.to_string())),
        Err(_) => return Ok(Response::Unreachable(format!("no response within {TIMEOUT:?}"))),
    };
    let message = Request::post(request.path())
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(request.json()))?;
    let no_tollgate = || format!("the server at {url} is not tollgate");
    let response = timeout(TIMEOUT, send(stream, message))
        .await
        .map_err(|_| anyhow!("{url} accepted the request and did not respond within {TIMEOUT:?}"))?
        .with_context(no_tollgate)?;
    let status = response.status();
    if status == StatusCode::OK {
        let body = response.into_body().into();
        return String::from_utf8(body).map(Response::Decision).with_context(no_tollgate);
    }
    match serde_json::from_slice::<Problem>(response.body()) {
        Ok(problem) => Err(anyhow!("{}", problem.detail)),
        Err(_) => Err(anyhow!("{}: status {status}", no_tollgate())),
    }
}

/// An error response.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

//! Asking a daemon over HTTP.

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

use super::question::Question;
use crate::url::authority;

/// What came of asking.
#[derive(Debug)]
pub(super) enum Asked {
    /// The decision, as JSON.
    Answered(String),
    /// Nobody is there, and why it seems so.
    Unreachable(String),
}

/// How long a daemon has to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of an answer.
const MAX_ANSWER: usize = 1024 * 1024;

/// Asks the daemon at a URL.
pub(super) async fn ask(url: &str, question: &Question) -> Result<Asked> {
    let authority = authority(url)?;
    let stream = match timeout(PATIENCE, TcpStream::connect(&authority)).await {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => return Ok(Asked::Unreachable(error.to_string())),
        Err(_) => return Ok(Asked::Unreachable(format!("no answer in {PATIENCE:?}"))),
    };
    let answered = timeout(PATIENCE, send(stream, &authority, question)).await;
    let (status, body) = answered
        .map_err(|_| anyhow!("{url} took the question and gave no answer in {PATIENCE:?}"))?
        .with_context(|| format!("what listens at {url} does not answer as tollgate does"))?;
    if status == StatusCode::OK {
        return Ok(Asked::Answered(body));
    }
    match serde_json::from_str::<Problem>(&body) {
        Ok(problem) => Err(anyhow!("{}", problem.detail)),
        Err(_) => Err(anyhow!("what listens at {url} is not tollgate: it answered {status}")),
    }
}

async fn send(
    stream: TcpStream,
    authority: &str,
    question: &Question,
) -> Result<(StatusCode, String)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::post(question.path())
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(question.json())))?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
    let body = body.map_err(|error| anyhow!("{error}"))?.to_bytes();
    connection.abort();
    Ok((status, String::from_utf8(body.into())?))
}

/// Why there is no decision.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

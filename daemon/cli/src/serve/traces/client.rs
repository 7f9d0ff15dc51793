//! The way to the collector.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The most that is read of an answer, which says little.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Sends each batch over a connection of its own: there is one every few seconds.
pub(super) struct Client {
    runtime: Handle,
    timeout: Duration,
    /// Whether the collector did not take the batch before.
    is_away: AtomicBool,
}

impl Client {
    pub(super) fn new(runtime: Handle, timeout: Duration) -> Self {
        Client { runtime, timeout, is_away: AtomicBool::new(false) }
    }

    /// Says in the log when the collector goes and when it comes back, and nothing in between.
    fn note(&self, to: &Uri, sent: &Result<Response<Bytes>>) {
        let why = match sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answers {}", answer.status())),
            Err(error) => Some(format!("{error:#}")),
        };
        let was_away = self.is_away.swap(why.is_some(), Ordering::Relaxed);
        match why {
            Some(why) if !was_away => {
                tracing::warn!("the collector at {to} takes no traces, which are lost: {why}");
            }
            None if was_away => tracing::info!("the collector at {to} takes traces again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    /// Is called on a thread of the SDK, which has no runtime of its own.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let to = request.uri().clone();
        let within = self.timeout;
        let sending = self.runtime.spawn(async move { timeout(within, send(request)).await });
        let sent = sending.await.context("the daemon stops").and_then(|context| {
            context.unwrap_or_else(|_| Err(anyhow!("it gives no answer in {within:?}")))
        });
        self.note(&to, &sent);
        sent.map_err(Into::into)
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>> {
    let uri = request.uri().clone();
    let authority = uri.authority().context("its address has no host")?;
    ensure!(uri.scheme_str() == Some("http"), "its address is not one of http");
    let stream = TcpStream::connect((bare(authority.host()), uri.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    let path = uri.path_and_query().map_or("/", |path_and_query| path_and_query.as_str());
    *request.uri_mut() = path.parse()?;
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    connection.abort();
    let body = body.map_err(|error| anyhow!("its answer cannot be read: {error}"))?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

/// An address of IPv6 without the brackets that it has in a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

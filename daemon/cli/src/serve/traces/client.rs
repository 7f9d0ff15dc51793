//! The HTTP client of the exporter.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use async_trait::async_trait;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client;

/// Sends each batch over a new connection; there is one every few seconds.
#[derive(Debug)]
pub(super) struct Client {
    runtime: Handle,
    timeout: Duration,
    /// Whether the previous batch failed.
    has_failed: AtomicBool,
}

impl Client {
    pub(super) fn new(runtime: Handle, timeout: Duration) -> Self {
        Client { runtime, timeout, has_failed: AtomicBool::new(false) }
    }

    /// Logs the first failure and the recovery.
    fn log_result(&self, to: &Uri, sent: &Result<Response<Bytes>>) {
        let failure = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it returned {}", response.status())),
            Err(error) => Some(format!("{error:#}")),
        };
        let had_failed = self.has_failed.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(failure) if !had_failed => {
                tracing::warn!(
                    "the collector at {to} accepts no traces, which are lost: {failure}"
                );
            }
            None if had_failed => tracing::info!("the collector at {to} accepts traces again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    /// The SDK calls this on a thread without a runtime.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let to = request.uri().clone();
        let limit = self.timeout;
        let sending = self.runtime.spawn(async move { timeout(limit, send(request)).await });
        let sent = sending.await.context("the daemon is stopping").and_then(|response| {
            response.unwrap_or_else(|_| Err(anyhow!("it does not respond within {limit:?}")))
        });
        self.log_result(&to, &sent);
        sent.map_err(Into::into)
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>> {
    let uri = request.uri().clone();
    let authority = uri.authority().context("its address has no host")?;
    ensure!(uri.scheme_str() == Some("http"), "its address must start with http://");
    let stream = TcpStream::connect((bare(authority.host()), uri.port_u16().unwrap_or(80))).await?;
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    let path = uri.path_and_query().map_or("/", |path_and_query| path_and_query.as_str());
    *request.uri_mut() = path.parse()?;
    client::respond(stream, request.map(Full::new)).await
}

/// An IPv6 address without the brackets of a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

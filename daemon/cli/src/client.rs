//! Requests to a daemon over HTTP/1.1.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::arguments::{Daemon, Token};

/// The maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// The time limit for connecting, and for the response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A daemon, and the token for it.
#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    address: Address,
    authorization: Option<HeaderValue>,
}

#[derive(Debug)]
enum Address {
    Tcp(String),
    Unix(PathBuf),
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    Response(T),
    /// No daemon is reachable, with the error.
    Unreachable(io::Error),
}

impl Client {
    pub(crate) fn new(daemon: &Daemon) -> Result<Self> {
        let authorization = daemon.token.read()?.map(|token| bearer(&token)).transpose()?;
        Ok(Client { url: daemon.url.clone(), address: address(&daemon.url)?, authorization })
    }

    /// Sends an operation. Returns the JSON of its result.
    pub(crate) async fn post(&self, path: &str, json: String) -> Result<Reply<String>> {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        self.json(request.body(Full::from(json))?).await
    }

    /// Returns the JSON at a path.
    pub(crate) async fn get(&self, path: &str) -> Result<Reply<String>> {
        self.json(Request::get(path).body(Full::default())?).await
    }

    async fn json(&self, request: Request<Full<Bytes>>) -> Result<Reply<String>> {
        let response = match self.send(request).await? {
            Reply::Response(response) => response,
            Reply::Unreachable(error) => return Ok(Reply::Unreachable(error)),
        };
        let no_tollgate = || format!("the server at {} is not tollgate", self.url);
        let status = response.status();
        if status == StatusCode::OK {
            let body = response.into_body().into();
            return String::from_utf8(body).map(Reply::Response).with_context(no_tollgate);
        }
        let Ok(problem) = serde_json::from_slice::<Problem>(response.body()) else {
            bail!("{}: status {status}", no_tollgate());
        };
        if status == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            bail!("{}; set --token-file or TOLLGATE_TOKEN", problem.detail);
        }
        bail!("{}", problem.detail)
    }

    /// Returns the status of a page.
    pub(crate) async fn status(&self, path: &str) -> Result<Reply<StatusCode>> {
        Ok(match self.send(Request::get(path).body(Full::default())?).await? {
            Reply::Response(response) => Reply::Response(response.status()),
            Reply::Unreachable(error) => Reply::Unreachable(error),
        })
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Reply<Response<Bytes>>> {
        let headers = request.headers_mut();
        let host = match &self.address {
            Address::Tcp(authority) => authority,
            Address::Unix(_) => "localhost",
        };
        headers.insert(HOST, HeaderValue::from_str(host)?);
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        match &self.address {
            Address::Tcp(authority) => self.exchange(TcpStream::connect(authority), request).await,
            Address::Unix(path) => self.exchange(UnixStream::connect(path), request).await,
        }
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        connect: impl Future<Output = io::Result<S>>,
        request: Request<Full<Bytes>>,
    ) -> Result<Reply<Response<Bytes>>> {
        let stream = match timeout(TIMEOUT, connect).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Ok(Reply::Unreachable(error)),
            Err(_) => return Ok(Reply::Unreachable(io::ErrorKind::TimedOut.into())),
        };
        let url = &self.url;
        timeout(TIMEOUT, respond(stream, request))
            .await
            .map_err(|_| {
                anyhow!("{url} accepted the request and did not respond within {TIMEOUT:?}")
            })?
            .map(Reply::Response)
            .with_context(|| format!("the server at {url} is not tollgate"))
    }
}

/// Sends the only request of a connection. Returns the response with its complete body.
pub(crate) async fn respond<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    connection.abort();
    let body = body.map_err(|error| anyhow!("cannot read the response: {error}"))?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

/// An error response.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

fn address(url: &str) -> Result<Address> {
    let usage = "write it as http://127.0.0.1:8080 or unix:/run/tollgate/http.sock";
    if let Some(path) = url.strip_prefix("unix:") {
        return Ok(Address::Unix(path.into()));
    }
    let uri: Uri = url.parse().map_err(|error| anyhow!("--url {url:?}: {error}; {usage}"))?;
    match (uri.scheme_str(), uri.host(), uri.path()) {
        (Some("http"), Some(host), "/" | "") => {
            // The default port of HTTP.
            Ok(Address::Tcp(format!("{host}:{}", uri.port_u16().unwrap_or(80))))
        }
        _ => bail!("--url {url:?} is not the URL of a daemon; {usage}"),
    }
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
        anyhow!("the token contains a control character; write a token of printable characters")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The variable with the token, which does not appear in the process list.
const TOKEN: &str = "TOLLGATE_TOKEN";

impl Token {
    /// The token of the file or the variable, without white space around it.
    pub(crate) fn read(&self) -> Result<Option<String>> {
        let text = match (&self.token_file, std::env::var(TOKEN)) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file);
                text.with_context(|| format!("cannot read --token-file {}", file.display()))?
            }
            (None, Ok(token)) => token,
            (None, Err(std::env::VarError::NotPresent)) => return Ok(None),
            (None, Err(error)) => bail!("{TOKEN}: {error}"),
        };
        let token = text.trim();
        if token.is_empty() {
            bail!("the token is empty; write it into the file of --token-file, or into {TOKEN}");
        }
        Ok(Some(token.to_owned()))
    }
}

//! Requests over HTTP/1.1.

use anyhow::{Result, anyhow, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// The `HOST:PORT` of a daemon's URL.
pub(crate) fn authority(url: &str) -> Result<String> {
    let usage = "write it as http://127.0.0.1:8080";
    let uri: Uri = url.parse().map_err(|error| anyhow!("--url {url:?}: {error}; {usage}"))?;
    match (uri.scheme_str(), uri.host(), uri.path()) {
        (Some("http"), Some(host), "/" | "") => {
            // The default port of HTTP.
            Ok(format!("{host}:{}", uri.port_u16().unwrap_or(80)))
        }
        _ => bail!("--url {url:?} is not the URL of a daemon; {usage}"),
    }
}

/// Sends the only request of a connection. Returns the response with its complete body.
pub(crate) async fn send(
    stream: TcpStream,
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

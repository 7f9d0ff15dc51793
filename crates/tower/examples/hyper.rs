//! A hyper server whose limit is shared through Redis: at most two downloads of each API key at once.
//!
//! ```sh
//! cargo run -p tollgate-tower --features redis --example hyper -- 127.0.0.1:3000 redis://127.0.0.1
//! curl -i -H 'x-api-key: secret' localhost:3000
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::convert::Infallible;
use std::env;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_stream::{Stream, StreamExt};
use tollgate::{Limiter, OnStoreError, Policy};
use tollgate_tower::{KeyExtractor, RateLimitLayer};
use tower::{Layer, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let store = arguments.next().unwrap_or_else(|| "redis://127.0.0.1".to_owned());

    let downloads = Policy::new("downloads", ["2 concurrent lease 30s".parse()?])?
        // While Redis is unavailable, downloads are not limited.
        .with_on_store_error(OnStoreError::Allow);
    let limiter = Limiter::open(&store).await?;
    let layer = RateLimitLayer::new(limiter, downloads, KeyExtractor::api_key("x-api-key"))
        .on_error(|error| println!("a slot was not released: {error}"));
    let service = layer.layer(service_fn(download));

    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
                println!("the connection failed: {error}");
            }
        });
    }
}

/// Ten parts in a second.
async fn download(
    _: Request<Incoming>,
) -> Result<Response<StreamBody<impl Stream<Item = Result<Frame<Bytes>, Infallible>>>>, Infallible>
{
    let parts = tokio_stream::iter(0..10).throttle(Duration::from_millis(100));
    let frames = parts.map(|part| Ok(Frame::data(Bytes::from(format!("part {part}\n")))));
    Ok(Response::new(StreamBody::new(frames)))
}

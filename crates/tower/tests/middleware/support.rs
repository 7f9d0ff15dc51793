//! What the tests share.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tollgate::{Limiter, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};
use tollgate_testkit::Server;
use tollgate_tower::{RateLimit, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

/// A policy with the name `api`.
pub(crate) fn api(limits: &str) -> Policy {
    policy("api", limits)
}

pub(crate) fn policy(name: &str, limits: &str) -> Policy {
    let limits: Policy = limits.parse().unwrap();
    Policy::new(name, limits.limits().to_vec()).unwrap()
}

/// A limiter whose clock is stopped.
pub(crate) fn stopped() -> (MemoryLimiter, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_021_500_000));
    (MemoryLimiter::builder().clock(clock.clone()).build(), clock)
}

pub(crate) fn advance(clock: &ManualClock, time: Duration) {
    clock.advance(Micros::from(time));
}

/// A limiter on a server, with a deadline that is long enough for a busy machine.
pub(crate) async fn redis(server: &Server) -> Limiter {
    let deadline = Duration::from_secs(10);
    let builder = Limiter::builder().deadline(deadline).connect_timeout(deadline);
    builder.open(&server.url()).await.unwrap()
}

/// The inner service: counts its calls, and responds with the status of the path `/status/NNN`, else
/// with 200.
#[derive(Clone, Debug, Default)]
pub(crate) struct Application {
    calls: Arc<AtomicUsize>,
}

impl Application {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl<B> Service<Request<B>> for Application {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let status = request.uri().path().strip_prefix("/status/");
        let status = status.map_or(StatusCode::OK, |status| status.parse().unwrap());
        let mut response = Response::new(Full::from("reached"));
        *response.status_mut() = status;
        std::future::ready(Ok(response))
    }
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) async fn from<B>(response: Response<B>) -> Self
    where
        B: http_body::Body<Error: std::fmt::Debug>,
    {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Reply { status: parts.status, headers: parts.headers, body }
    }
}

/// The layer around a new application.
pub(crate) fn around(layer: &RateLimitLayer) -> (RateLimit<Application>, Application) {
    let application = Application::default();
    (layer.layer(application.clone()), application)
}

/// Sends a request to a clone of the service.
pub(crate) async fn send<B>(service: &RateLimit<Application>, request: Request<B>) -> Reply {
    Reply::from(service.clone().oneshot(request).await.unwrap()).await
}

/// The status of each of several requests in turn.
pub(crate) async fn statuses(
    service: &RateLimit<Application>,
    requests: impl IntoIterator<Item = Request<()>>,
) -> Vec<u16> {
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(send(service, request).await.status.as_u16());
    }
    statuses
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

/// A request with headers, in the form `name: value`.
pub(crate) fn with_headers(lines: &[&str]) -> Request<()> {
    let mut request = get("/");
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    request
}

/// Sends a GET request over a connection of its own.
pub(crate) async fn fetch(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Reply {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut request = Request::get(path).header("host", "test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    let reply = Reply::from(response).await;
    drop(sender);
    connection.await.unwrap().unwrap();
    reply
}

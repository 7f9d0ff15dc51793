//! `ShouldRateLimit` over gRPC, with several requests in flight on each connection.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::{
    RateLimitDescriptor, rate_limit_descriptor::Entry,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code as LimitCode;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status};

use crate::clock::PreciseTimer;
use crate::connection::{self, ConnectionEnd, Connector, SessionEnd};
use crate::error::LoadError;
use crate::keys::Keys;
use crate::plan::{CheckSpec, Endpoint, LimitedBy};
use crate::reply::{Decision, ErrorKind, RequestError};
use crate::tally::SentRequest;
use crate::worker::Worker;

/// Builds the requests of a plan for Envoy's rate limit service.
#[derive(Clone, Debug)]
pub(crate) struct Grpc {
    origin: http::Uri,
    token: Option<MetadataValue<Ascii>>,
    domain: String,
    cost: u32,
    keys: Keys,
}

/// The part of a response that matters to a load test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) allowed: bool,
    /// Whether any limit applies to the request.
    pub(crate) is_limited: bool,
}

type Client = RateLimitServiceClient<Connection>;

impl Grpc {
    /// # Errors
    /// gRPC cannot transport the address, the token or the cost.
    pub(crate) fn new(
        endpoint: &Endpoint,
        check: &CheckSpec,
        keys: &Keys,
    ) -> Result<Self, LoadError> {
        let (LimitedBy::Policy(domain) | LimitedBy::Limits(domain)) = &check.limited_by;
        let address = endpoint.address();
        let origin = format!("http://{address}").parse().map_err(|error| {
            LoadError::InvalidPlan(format!("{address:?} is not an address: {error}"))
        })?;
        let token = endpoint.password.as_ref().map(|token| format!("Bearer {token}").parse());
        let token = token.transpose().map_err(|_| {
            LoadError::InvalidPlan(
                "the token contains characters that a header cannot carry; use printable ASCII"
                    .to_owned(),
            )
        })?;
        let cost = check.cost.try_into().map_err(|_| {
            LoadError::InvalidPlan(format!(
                "--cost {} is too large for gRPC; at most {}",
                check.cost,
                u32::MAX
            ))
        })?;
        Ok(Grpc { origin, token, domain: domain.clone(), cost, keys: keys.clone() })
    }

    /// Sends a request that charges nothing.
    pub(crate) async fn probe(
        &self,
        stream: TcpStream,
        limit: Duration,
    ) -> Result<Response, RequestError> {
        let client = self.open(stream).await?;
        self.call(client, 0, 0, limit).await
    }

    /// Starts a connection, which runs until its last client is dropped.
    async fn open(&self, stream: TcpStream) -> Result<Client, RequestError> {
        let (sender, connection) =
            handshake(LocalExecutor, TokioIo::new(stream)).await.map_err(lost)?;
        // The requests in flight report the connection's error.
        spawn_local(async move { drop(connection.await) });
        Ok(RateLimitServiceClient::with_origin(Connection(sender), self.origin.clone()))
    }

    async fn call(
        &self,
        mut client: Client,
        key: u32,
        cost: u32,
        limit: Duration,
    ) -> Result<Response, RequestError> {
        let mut request = tonic::Request::new(self.request(key, cost));
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        match timeout(limit, client.should_rate_limit(request)).await {
            Ok(Ok(response)) => read(response.get_ref()),
            Ok(Err(status)) => Err(request_error(&status)),
            Err(_elapsed) => Err(RequestError::timeout()),
        }
    }

    fn request(&self, key: u32, cost: u32) -> RateLimitRequest {
        let entry = Entry { key: "key".to_owned(), value: self.keys.name(key) };
        // A request cost of 0 stands for 1, a descriptor's cost of 0 for nothing.
        let hits_addend = (cost == 0).then_some(UInt64Value { value: 0 });
        RateLimitRequest {
            domain: self.domain.clone(),
            descriptors: vec![RateLimitDescriptor {
                entries: vec![entry],
                hits_addend,
                ..RateLimitDescriptor::default()
            }],
            hits_addend: cost,
        }
    }
}

fn read(response: &RateLimitResponse) -> Result<Response, RequestError> {
    let allowed = match response.overall_code() {
        LimitCode::Ok => true,
        LimitCode::OverLimit => false,
        LimitCode::Unknown => {
            let message = format!("the response has the code {}", response.overall_code);
            return Err(RequestError::new(ErrorKind::Protocol, message));
        }
    };
    let is_limited = response.statuses.iter().any(|status| status.current_limit.is_some());
    Ok(Response { allowed, is_limited })
}

fn request_error(status: &Status) -> RequestError {
    if let Some(source) = std::error::Error::source(status) {
        return lost(source);
    }
    let (code, message) = (status.code(), status.message());
    let kind = match code {
        _ if has_start(message, PROTOCOL_VIOLATIONS) => ErrorKind::Protocol,
        _ if has_start(message, &["grpc-status header missing"]) => {
            let is_server_error = message.contains("HTTP status code 5");
            if is_server_error { ErrorKind::Unavailable } else { ErrorKind::Protocol }
        }
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Internal
        | Code::Unavailable => ErrorKind::Unavailable,
        _ => ErrorKind::Rejected,
    };
    let text = format!("grpc-status {} {message}", i32::from(code));
    RequestError::new(kind, text.trim_end())
}

/// How the messages of the client's own errors start. Their codes do not differ from a server's.
const PROTOCOL_VIOLATIONS: &[&str] = &[
    "protocol error",
    "failed to decode Protobuf message",
    "Unexpected EOF decoding stream",
    "Missing response message",
];

fn has_start(message: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| message.starts_with(start))
}

fn lost(error: impl ToString) -> RequestError {
    RequestError::new(ErrorKind::Lost, error)
}

/// An HTTP/2 connection as a service. Unlike a channel of `tonic` it neither queues requests nor
/// reconnects, so that the schedule and the error counts remain the generator's own.
#[derive(Clone, Debug)]
struct Connection(SendRequest<Body>);

impl Service<http::Request<Body>> for Connection {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Runs the tasks of a connection on the thread that drives it.
#[derive(Clone, Copy, Debug)]
struct LocalExecutor;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        spawn_local(async move { drop(future.await) });
    }
}

/// Sends requests over `first`, and over new connections whenever one ends.
pub(crate) async fn drive(
    worker: &Rc<Worker>,
    connector: &Connector,
    grpc: &Rc<Grpc>,
    first: io::Result<TcpStream>,
) -> ConnectionEnd {
    connection::drive(worker, connector, first, async |stream| match grpc.open(stream).await {
        Ok(client) if run_streams(worker, grpc, &client).await => SessionEnd::Finished,
        Ok(_) => SessionEnd::Failed,
        Err(error) => {
            worker.record_error(error);
            SessionEnd::Failed
        }
    })
    .await
}

/// Runs as many streams as may be in flight; returns whether all requests were sent.
async fn run_streams(worker: &Rc<Worker>, grpc: &Rc<Grpc>, client: &Client) -> bool {
    let is_lost = Rc::new(Cell::new(false));
    let tasks: Vec<_> = (0..worker.pipeline)
        .map(|_| {
            let (worker, grpc) = (Rc::clone(worker), Rc::clone(grpc));
            let (client, is_lost) = (client.clone(), Rc::clone(&is_lost));
            spawn_local(async move {
                if !run_stream(&worker, &grpc, &client).await {
                    is_lost.set(true);
                }
            })
        })
        .collect();
    for task in tasks {
        // The panic hook has reported a panic.
        drop(task.await);
    }
    !is_lost.get()
}

/// Sends one request at a time; returns false when the connection is lost.
async fn run_stream(worker: &Worker, grpc: &Grpc, client: &Client) -> bool {
    let mut timer = PreciseTimer::default();
    while let Some(due) = worker.take() {
        if let Err(error) = timer.sleep_until(&worker.clock, due).await {
            worker.record_error(RequestError::new(ErrorKind::Refused, error));
            return false;
        }
        let (key, sent) = (worker.choose_key(), worker.clock.now());
        worker.count_sent();
        match grpc.call(client.clone(), key, grpc.cost, worker.timeout).await {
            Ok(response) => {
                let decision = Decision::from_allowed(response.allowed);
                worker.record(SentRequest { key, due, sent }, &decision);
            }
            Err(error) => {
                let is_lost = error.kind == ErrorKind::Lost;
                worker.record_error(error);
                if is_lost {
                    return false;
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests;

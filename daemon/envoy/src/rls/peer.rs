//! A gRPC connection: routing of its requests to services.

use std::sync::Arc;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitServiceServer, SERVICE_NAME,
};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::sync::watch;
use tonic::codegen::Service as _;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;

use super::EnvoyState;
use super::body::Body;
use super::error::EnvoyError;
use super::health::{self, Health};
use super::reflection::Reflection;
use super::service::Service;
use tollgate_engine::{Engine, ListenerKind, Remote};

use tollgate_http as http;
use tollgate_transport::BusyGuard;
use tollgate_transport::Lifecycle;

type Reply = Response<Body>;

/// A gRPC connection.
#[derive(Debug)]
pub struct GrpcConnection {
    engine: Arc<Engine>,
    state: Arc<EnvoyState>,
    lifecycle: Arc<Lifecycle>,
    remote: Arc<Remote>,
    /// Whether the connection is closing, which ends endless streams.
    closing: watch::Sender<bool>,
}

impl GrpcConnection {
    /// A connection of a client.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        state: Arc<EnvoyState>,
        lifecycle: Arc<Lifecycle>,
        remote: Arc<Remote>,
    ) -> Self {
        GrpcConnection { engine, state, lifecycle, remote, closing: watch::Sender::new(false) }
    }

    /// Ends endless streams.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Answers one request.
    pub async fn answer(&self, request: Request<Incoming>, busy: BusyGuard) -> Reply {
        let is_probe = request.uri().path().contains(health::NAME);
        let reply = match rejection(&request) {
            Some((status, line)) => plain(status, line),
            None => self.call(request, busy).await,
        };
        if !is_probe {
            let status = http_status(&reply).as_u16();
            self.engine.counters.listener(ListenerKind::Grpc).count_response(status);
        }
        reply
    }

    async fn call(&self, request: Request<Incoming>, busy: BusyGuard) -> Reply {
        let path = request.uri().path();
        match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
            Some((SERVICE_NAME, _)) => self.limit(request).await.map(|body| Body::new(body, None)),
            // A watched status may not change for long, and its connection is not idle.
            Some((health::NAME, _)) => {
                self.health(request).await.map(|body| Body::new(body, Some(busy)))
            }
            Some((name, _)) => match Reflection::of_name(name) {
                // A stream without further requests is idle.
                Some(reflection) => {
                    reflection.answer(request).await.map(|body| Body::new(body, None))
                }
                None => status_reply(Status::unimplemented(unknown(path))),
            },
            None => status_reply(Status::unimplemented(unknown(path))),
        }
    }

    /// Answers a call of the rate limit service. Its message is read whole first.
    async fn limit(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let request = match self.whole(request).await {
            Ok(request) => request,
            Err(error) => return Status::from(error).into_http(),
        };
        let most = self.engine.active().bounds.body;
        let service = Service::new(
            Arc::clone(&self.engine),
            Arc::clone(&self.state),
            Arc::clone(&self.remote),
        );
        let mut server = RateLimitServiceServer::new(service).max_decoding_message_size(most);
        match server.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn health(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let request = match self.whole(request).await {
            Ok(request) => request,
            Err(error) => return Status::from(error).into_http(),
        };
        let health = Health::new(&self.lifecycle, self.closing.subscribe());
        match HealthServer::new(health).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Reads the whole body, within the bounds.
    async fn whole(&self, request: Request<Incoming>) -> Result<Request<Full<Bytes>>, EnvoyError> {
        let (head, body) = request.into_parts();
        let (max_len, deadline) = {
            let bounds = &self.engine.active().bounds;
            (bounds.body, bounds.header_timeout)
        };
        let body = http::read(body, max_len, deadline).await?;
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

/// The response to a request that is not a gRPC call.
fn rejection(request: &Request<Incoming>) -> Option<(StatusCode, &'static str)> {
    if request.version() < Version::HTTP_2 {
        let line = "this is the gRPC listener, which needs HTTP/2; use listen.http for HTTP/1.1\n";
        return Some((StatusCode::HTTP_VERSION_NOT_SUPPORTED, line));
    }
    if request.method() != Method::POST {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "gRPC calls use POST\n"));
    }
    if !is_grpc(request.headers()) {
        let line = "gRPC calls have the content-type application/grpc; gRPC-Web is not supported\n";
        return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, line));
    }
    None
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    kind.strip_prefix(b"application/grpc")
        .is_some_and(|kind| matches!(kind, [] | [b'+' | b';', ..]))
}

fn plain(status: StatusCode, line: &'static str) -> Reply {
    http::text(status, line).map(|x| Body::new(tonic::body::Body::new(x), None))
}

fn status_reply(status: Status) -> Reply {
    status.into_http::<tonic::body::Body>().map(|status| Body::new(status, None))
}

fn unknown(path: &str) -> String {
    let shown: String = path.chars().take(128).collect();
    format!("unknown path {shown:?}; the rate limit service is /{SERVICE_NAME}/ShouldRateLimit")
}

/// The HTTP status that a response is counted as.
fn http_status(reply: &Reply) -> StatusCode {
    let Some(code) = reply.headers().get(Status::GRPC_STATUS) else { return reply.status() };
    match Code::from_bytes(code.as_bytes()) {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted
        | Code::Unimplemented => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

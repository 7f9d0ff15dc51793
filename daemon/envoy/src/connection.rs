//! A gRPC connection: routing of its requests to services.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server::{
    RateLimitQuotaServiceServer, SERVICE_NAME as QUOTA_NAME,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer, SERVICE_NAME,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use http_body_util::Full;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use pin_project_lite::pin_project;
use prost::Message;
use tokio::sync::watch;
use tollgate_engine::{Engine, ListenerKind, Remote};
use tollgate_http as http;
use tollgate_transport::{BusyGuard, Lifecycle, WatchGuard};
use tonic::codegen::Service as _;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;

use crate::compare::ComparisonCall;
use crate::error::EnvoyError;
use crate::health::{self, Health};
use crate::quota::QuotaService;
use crate::reflection::Reflection;
use crate::{EnvoyState, answer_call, bounded};

type Reply = Response<Body>;

/// The least bound of a message with reports: 1,000 buckets with ids of 1 KiB.
const MIN_REPORT_LEN: usize = 1024 * 1024;

/// The length of a message that its response will contain, an extension of the response: the body
/// is encoded only when the client can receive it.
#[derive(Clone, Copy, Debug)]
pub struct MessageLen(pub usize);

pin_project! {
    /// A response body. Until a health watch or a stream of quotas ends, its connection
    /// may be silent.
    #[derive(Debug)]
    pub struct Body {
        #[pin]
        body: tonic::body::Body,
        watch: Option<WatchGuard>,
    }
}

impl From<tonic::body::Body> for Body {
    fn from(body: tonic::body::Body) -> Self {
        Body { body, watch: None }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A gRPC connection.
#[derive(Debug)]
pub struct GrpcConnection {
    service: Service,
    lifecycle: Arc<Lifecycle>,
    /// Whether the connection is closing, which ends endless streams.
    closing: watch::Sender<bool>,
    /// Cloned by each stream of the quota service.
    quotas: Arc<()>,
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
        let service = Service { engine, state, remote };
        GrpcConnection {
            service,
            lifecycle,
            closing: watch::Sender::new(false),
            quotas: Arc::default(),
        }
    }

    /// Whether a stream of the quota service is open. On another one, its client would wait until
    /// its shares of the limits are free.
    #[must_use]
    pub fn has_quotas(&self) -> bool {
        Arc::strong_count(&self.quotas) > 1
    }

    /// Ends endless streams.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Answers one request.
    pub async fn answer(&self, request: Request<Incoming>, busy: BusyGuard) -> Reply {
        let is_probe = request.uri().path().contains(health::NAME);
        let reply = match rejection(&request) {
            Some((status, line)) => {
                http::text(status, line).map(|body| tonic::body::Body::new(body).into())
            }
            None => self.call(request, busy).await,
        };
        if !is_probe {
            let status = http_status(&reply).as_u16();
            self.service.engine.counters.listener(ListenerKind::Grpc).count_response(status);
        }
        reply
    }

    async fn call(&self, request: Request<Incoming>, busy: BusyGuard) -> Reply {
        let path = request.uri().path();
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        match service.map(|(name, _)| name) {
            Some(SERVICE_NAME) => self.limit(request).await.map(Body::from),
            // A client reports every few seconds, or when it has requests.
            Some(QUOTA_NAME) => {
                let watch = Some(busy.watch());
                self.divide(request).await.map(|body| Body { body, watch })
            }
            // A watched status may not change for long.
            Some(health::NAME) => {
                let watch = path.ends_with("/Watch").then(|| busy.watch());
                self.health(request).await.map(|body| Body { body, watch })
            }
            // A stream of reflection without further requests is idle.
            name => match name.and_then(Reflection::from_name) {
                Some(reflection) => reflection.answer(request).await.map(Body::from),
                None => unknown_path(path).into_http::<tonic::body::Body>().map(Body::from),
            },
        }
    }

    /// Answers a call of the rate limit service.
    async fn limit(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let request = match self.read(request).await {
            Ok(request) => request,
            Err(error) => return Status::from(error).into_http(),
        };
        let max_len = self.service.engine.active().bounds.body;
        let mut server =
            RateLimitServiceServer::new(self.service.clone()).max_decoding_message_size(max_len);
        let Ok(response) = server.call(request).await;
        response
    }

    /// Answers a stream of the quota service.
    async fn divide(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let service = self.service.clone();
        // A client reports all its buckets in one message.
        let max_len = service.engine.active().bounds.body.max(MIN_REPORT_LEN);
        let (closing, open) = (self.closing.subscribe(), Arc::clone(&self.quotas));
        let service = QuotaService { service, closing, open };
        let mut server =
            RateLimitQuotaServiceServer::new(service).max_decoding_message_size(max_len);
        let Ok(response) = server.call(request).await;
        response
    }

    async fn health(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let request = match self.read(request).await {
            Ok(request) => request,
            Err(error) => return Status::from(error).into_http(),
        };
        let health = Health::new(&self.lifecycle, self.closing.subscribe());
        let Ok(response) = HealthServer::new(health).call(request).await;
        response
    }

    /// Reads the whole body, within the bounds.
    async fn read(&self, request: Request<Incoming>) -> Result<Request<Full<Bytes>>, EnvoyError> {
        let (head, body) = request.into_parts();
        let body = http::read(body, &self.service.engine.active().bounds).await?;
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

/// The services of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: Arc<EnvoyState>,
    pub(crate) remote: Arc<Remote>,
}

#[tonic::async_trait]
impl RateLimitService for Service {
    async fn should_rate_limit(
        &self,
        request: tonic::Request<RateLimitRequest>,
    ) -> Result<tonic::Response<RateLimitResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let Service { engine, state, remote } = self;
        let active = engine.active();
        let message = match &active.envoy.compare {
            None => answer_call(engine, state, remote, metadata.as_ref(), &message).await?,
            Some(options) => {
                let call = ComparisonCall {
                    engine: Arc::clone(engine),
                    state: Arc::clone(state),
                    remote: Arc::clone(remote),
                    active: Arc::clone(&active),
                    headers: metadata.into_headers(),
                    request: message,
                };
                call.answer(options).await?
            }
        };
        let len = MessageLen(message.encoded_len());
        let mut response = tonic::Response::new(message);
        response.extensions_mut().insert(len);
        Ok(response)
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

fn unknown_path(path: &str) -> Status {
    let shown = bounded(path);
    let remedy = format!("the rate limit service is /{SERVICE_NAME}/ShouldRateLimit");
    Status::unimplemented(format!("unknown path {shown:?}; {remedy}"))
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

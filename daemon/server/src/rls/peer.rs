//! A peer that speaks gRPC: which of its requests are calls, and of which service.

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

use super::body::Body;
use super::health::{self, Health};
use super::reflection::Reflection;
use super::refusal::Refusal;
use super::service::Service;
use crate::daemon::Daemon;
use crate::http;
use crate::listener::Remote;
use crate::pulse::Busy;
use crate::role::Role;

type Reply = Response<Body>;

/// A peer that speaks gRPC, as long as its connection lasts.
#[derive(Debug)]
pub(crate) struct Peer {
    daemon: Arc<Daemon>,
    remote: Arc<Remote>,
    /// Whether the connection is to end, so that nothing may go on for ever.
    ending: watch::Sender<bool>,
}

impl Peer {
    pub(crate) fn new(daemon: Arc<Daemon>, remote: Arc<Remote>) -> Self {
        Peer { daemon, remote, ending: watch::Sender::new(false) }
    }

    /// Has what would go on for ever come to an end.
    pub(crate) fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>, busy: Busy) -> Reply {
        let is_probe = request.uri().path().contains(health::NAME);
        let reply = match refused(&request) {
            Some((status, line)) => plain(status, line),
            None => self.call(request, busy).await,
        };
        if !is_probe {
            self.daemon.metrics.traffic(Role::Grpc).answered(status_of(&reply));
        }
        reply
    }

    async fn call(&self, request: Request<Incoming>, busy: Busy) -> Reply {
        let path = request.uri().path();
        match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
            Some((SERVICE_NAME, _)) => self.limit(request).await.map(|body| Body::new(body, None)),
            // What is watched need not change for long.
            Some((health::NAME, _)) => {
                self.tell_health(request).await.map(|body| Body::new(body, Some(busy)))
            }
            Some((name, _)) => match Reflection::of_name(name) {
                // A peer may keep a stream open and ask nothing more: that is to be idle.
                Some(value) => value.answer(request).await.map(|body| Body::new(body, None)),
                None => refuse(Status::unimplemented(unknown(path))),
            },
            None => refuse(Status::unimplemented(unknown(path))),
        }
    }

    /// Answers a call of the rate limit service, whose message is there whole before it is looked
    /// at.
    async fn limit(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let request = match self.whole(request).await {
            Ok(request) => request,
            Err(refusal) => return Status::from(refusal).into_http(),
        };
        let most = self.daemon.live().bounds.body;
        let service = Service::new(Arc::clone(&self.daemon), Arc::clone(&self.remote));
        let mut server = RateLimitServiceServer::new(service).max_decoding_message_size(most);
        server.call(request).await.unwrap_or_default()
    }

    async fn tell_health(&self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let request = match self.whole(request).await {
            Ok(request) => request,
            Err(refusal) => return Status::from(refusal).into_http(),
        };
        let health = Health::new(&self.daemon, self.ending.subscribe());
        HealthServer::new(health).call(request).await.unwrap_or_default()
    }

    /// A request with all of its body, which must be there in time.
    async fn whole(&self, request: Request<Incoming>) -> Result<Request<Full<Bytes>>, Refusal> {
        let (head, body) = request.into_parts();
        let (most, patience) = {
            let bounds = &self.daemon.live().bounds;
            (bounds.body, bounds.header_timeout)
        };
        let body = http::read(body, most, patience).await?;
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

/// Why a request is no call of gRPC, if it is none.
fn refused(request: &Request<Incoming>) -> Option<(StatusCode, &'static str)> {
    if request.version() < Version::HTTP_2 {
        let line = "this port speaks gRPC, which needs HTTP/2; HTTP/1.1 is spoken at --http\n";
        return Some((StatusCode::HTTP_VERSION_NOT_SUPPORTED, line));
    }
    if request.method() != Method::POST {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "a call of gRPC is a POST\n"));
    }
    if !is_grpc(request.headers()) {
        let line = "a call of gRPC has the content-type application/grpc; gRPC-Web is not spoken\n";
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

fn refuse(status: Status) -> Reply {
    status.into_http::<tonic::body::Body>().map(|status| Body::new(status, None))
}

fn unknown(path: &str) -> String {
    let shown: String = path.chars().take(128).collect();
    format!("there is no {shown:?}; limits are asked for at /{SERVICE_NAME}/ShouldRateLimit")
}

/// What an answer counts as among those of HTTP.
fn status_of(reply: &Reply) -> StatusCode {
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

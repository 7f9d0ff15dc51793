//! Routing of HTTP requests by listener and path.

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Method, Request, Response, Version};
use tollgate_engine::{ListenerKind, Remote};

use crate::services::Services;
use crate::{metrics, probes};
use tollgate_http::{Problem, Reply, RequestHead, hidden_path, method_not_allowed, problem_reply};
use tollgate_transport::BusyGuard;

/// A response body: whole, or of the admin listener.
pub(crate) type Body = Either<Full<Bytes>, tollgate_admin::Body>;

/// Answers a request on a listener of HTTP; while the daemon stops, as the last one of its
/// connection. The request is in flight until `busy` is dropped.
pub(crate) async fn answer(
    services: &Services,
    kind: ListenerKind,
    remote: &Remote,
    request: Request<Incoming>,
    busy: BusyGuard,
) -> Response<Body> {
    let version = request.version();
    let mut reply = match kind {
        ListenerKind::Admin => {
            services.admin.answer(remote, request, busy).await.map(Either::Right)
        }
        _ => {
            let reply = answer_whole(services, kind, remote, request).await;
            drop(busy);
            reply.map(Either::Left)
        }
    };
    if services.lifecycle.is_closing() && version <= Version::HTTP_11 {
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

async fn answer_whole(
    services: &Services,
    kind: ListenerKind,
    remote: &Remote,
    request: Request<Incoming>,
) -> Reply {
    match kind {
        ListenerKind::Http => answer_http(services, remote, request).await,
        ListenerKind::Metrics => match probes::answer(services, remote, &request).await {
            Some(reply) => reply,
            None => metrics::answer(services, &request),
        },
        ListenerKind::Debug => match check_origin(services, remote, &request) {
            Ok(()) => metrics::answer_debug(services, &request),
            Err(problem) => problem_reply(&problem),
        },
        ListenerKind::Grpc | ListenerKind::Resp | ListenerKind::Admin => {
            unreachable!("{} has a protocol of its own", kind.as_str())
        }
    }
}

fn check_origin<B>(
    services: &Services,
    remote: &Remote,
    request: &Request<B>,
) -> Result<(), Problem> {
    let head = RequestHead::new(request.method(), request.uri(), request.headers());
    head.check_origin(remote, &services.engine.active())
}

async fn answer_http(services: &Services, remote: &Remote, request: Request<Incoming>) -> Reply {
    // Probes are not counted as requests.
    if let Some(reply) = probes::answer(services, remote, &request).await {
        return reply;
    }
    let engine = &services.engine;
    let reply = match request.uri().path() {
        "/healthcheck" => return probes::healthcheck(services, &request),
        "/json" if *request.method() == Method::POST => {
            tollgate_envoy::answer_json(engine, &services.envoy, remote, request).await
        }
        "/json" => problem_reply(&method_not_allowed(request.method(), "/json", "POST")),
        path if engine.active().envoy.compat.hides_api => problem_reply(&hidden_path(path)),
        _ => tollgate_http::answer(engine, &services.http, remote, request).await,
    };
    engine.counters.listener(ListenerKind::Http).count_response(reply.status().as_u16());
    reply
}

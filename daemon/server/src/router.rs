//! Routing of HTTP requests by listener and path.

use hyper::body::Incoming;
use hyper::{Method, Request};
use tollgate_engine::{ListenerKind, Remote};

use crate::services::Services;
use crate::{debug, metrics, probes};
use tollgate_http::{Reply, method_not_allowed, problem_reply};

/// Answers a request on a listener of HTTP.
pub(crate) async fn answer(
    services: &Services,
    kind: ListenerKind,
    remote: &Remote,
    request: Request<Incoming>,
) -> Reply {
    match kind {
        ListenerKind::Http => answer_http(services, remote, request).await,
        ListenerKind::Metrics => match probes::answer(services, &request).await {
            Some(reply) => reply,
            None => metrics::answer(services, &request),
        },
        ListenerKind::Debug => debug::answer(services, &request),
        ListenerKind::Grpc | ListenerKind::Resp => {
            unreachable!("{} has a protocol of its own", kind.as_str())
        }
    }
}

async fn answer_http(services: &Services, remote: &Remote, request: Request<Incoming>) -> Reply {
    // Probes are not counted as requests.
    if let Some(reply) = probes::answer(services, &request).await {
        return reply;
    }
    let engine = &services.engine;
    let reply = match request.uri().path() {
        "/healthcheck" => return probes::healthcheck(services, &request),
        "/json" if *request.method() == Method::POST => {
            tollgate_envoy::answer_json(engine, &services.envoy, remote, request).await
        }
        "/json" => problem_reply(&method_not_allowed(request.method(), "/json", "POST")),
        _ => tollgate_http::answer(engine, &services.http, remote, request).await,
    };
    engine.counters.listener(ListenerKind::Http).count_response(reply.status().as_u16());
    reply
}

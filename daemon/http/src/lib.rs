//! The JSON API, forward auth and the OpenAPI document.

mod authentication;
mod body;
mod forward;
mod json;
mod keys;
mod object;
mod openapi;
mod operations;
mod origin;
mod problem;
mod reply;
mod value;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request};
use tollgate::{Decision, Policy};
use tollgate_engine::{Engine, LogThrottle, OPERATIONS, OperationSpec, Remote};

pub use self::authentication::{TokenHeader, authenticate, is_operator};
pub use self::body::read;
use self::forward::GatewayProtocol;
pub use self::origin::RequestHead;
pub use self::problem::{Problem, ProblemKind};
pub use self::reply::{Reply, json_with_status, page, problem as problem_reply, text};
use tollgate_document::did_you_mean;

/// A decision as the JSON API returns it.
#[must_use]
pub fn decision_json(policy: &Policy, decision: &Decision) -> String {
    json::decision(policy, decision, None)
}

/// A name that is parsed at compile time, not in each request.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The header `traceparent` of a request.
pub fn traceparent(headers: &HeaderMap) -> Option<&str> {
    headers.get(TRACEPARENT)?.to_str().ok()
}

/// The resource at a path.
enum Route {
    OpenApi,
    Keys,
    Operation(&'static OperationSpec),
    ForwardAuth(&'static GatewayProtocol),
}

/// The paths of the HTTP listener that other modules serve.
const OTHER_PATHS: [&str; 4] = ["/livez", "/readyz", "/healthcheck", "/json"];

/// The state of the HTTP interface.
#[derive(Debug, Default)]
pub struct HttpState {
    /// Requests of gateways that failed.
    undecided: LogThrottle,
    /// Requests of gateways with a tier that the policy does not have.
    unknown_tiers: LogThrottle,
}

/// Answers one request.
pub async fn answer(
    engine: &Engine,
    state: &HttpState,
    remote: &Remote,
    request: Request<Incoming>,
) -> Reply {
    let result = match route(request.method(), request.uri().path()) {
        Ok(Route::OpenApi) => answer_openapi(engine, remote, &request).await,
        Ok(Route::Keys) => keys::answer(engine, remote, &request, false).await,
        Ok(Route::Operation(spec)) => {
            operations::answer(engine, remote, spec, request, false).await
        }
        Ok(Route::ForwardAuth(gateway)) => {
            Ok(forward::answer(engine, state, remote, gateway, request).await)
        }
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(|problem| reply::problem(&problem))
}

/// Answers a request of a page, or of a program beside it, for an operation: `GET` with a query, or
/// `POST` with a body.
///
/// # Errors
/// The request is refused or invalid, or the store is unavailable.
pub async fn answer_page(
    engine: &Engine,
    remote: &Remote,
    operation: &'static OperationSpec,
    request: Request<Incoming>,
) -> Result<Reply, Problem> {
    operations::answer(engine, remote, operation, request, true).await
}

/// Answers a query of a page, or of a program beside it, for the keys of a policy.
///
/// # Errors
/// The request is refused or invalid, or the store is unavailable.
pub async fn answer_page_keys<B>(
    engine: &Engine,
    remote: &Remote,
    request: &Request<B>,
) -> Result<Reply, Problem> {
    keys::answer(engine, remote, request, true).await
}

fn route(method: &Method, path: &str) -> Result<Route, Problem> {
    if let Some(gateway) = forward::from_path(path) {
        return gateway.map(Route::ForwardAuth);
    }
    if path == "/openapi.json" {
        return match *method {
            Method::GET | Method::HEAD => Ok(Route::OpenApi),
            _ => Err(method_not_allowed(method, path, "GET, HEAD")),
        };
    }
    if path == keys::PATH {
        return match *method {
            Method::GET | Method::HEAD => Ok(Route::Keys),
            _ => Err(method_not_allowed(method, path, "GET, HEAD")),
        };
    }
    let Some(spec) = path.strip_prefix("/v1/").and_then(OperationSpec::from_name) else {
        return Err(unknown_path(path));
    };
    let has_query_form = operations::has_query_form(spec);
    match *method {
        Method::POST => Ok(Route::Operation(spec)),
        Method::GET if has_query_form => Ok(Route::Operation(spec)),
        _ if has_query_form => Err(method_not_allowed(method, path, "GET, POST")),
        _ => Err(method_not_allowed(method, path, "POST")),
    }
}

/// The problem of a path that does not support the method.
pub fn method_not_allowed(method: &Method, path: &str, allow: &'static str) -> Problem {
    let detail = format!("{path} does not support {method}; use {allow}");
    Problem::new(ProblemKind::Method, detail).with_allow(allow)
}

/// The problem of a path that `tollgate ratelimit` serves only on request.
#[must_use]
pub fn hidden_path(path: &str) -> Problem {
    let shown: String = path.chars().take(MAX_SHOWN_PATH).collect();
    let remedy = "/json is served; start tollgate ratelimit with --json-api for the JSON API, or with \
                  --operators loopback for operators on the same machine";
    Problem::new(ProblemKind::UnknownPath, format!("unknown path {shown:?}; {remedy}"))
}

/// The characters of a path that a message shows.
const MAX_SHOWN_PATH: usize = 64;

fn unknown_path(path: &str) -> Problem {
    let operations: Vec<_> = OPERATIONS.iter().map(|spec| format!("/v1/{}", spec.name)).collect();
    let known = operations
        .iter()
        .map(|path| &**path)
        .chain([keys::PATH, "/openapi.json"])
        .chain(OTHER_PATHS);
    let hint = match path {
        "/metrics" => "metrics have a listener of their own, listen.metrics".to_owned(),
        _ => did_you_mean(path, known).unwrap_or_else(|| "decisions are at /v1/check".to_owned()),
    };
    let shown: String = path.chars().take(MAX_SHOWN_PATH).collect();
    Problem::new(ProblemKind::UnknownPath, format!("unknown path {shown:?}; {hint}"))
}

/// The OpenAPI document; with tokens, for clients with any valid token.
async fn answer_openapi<B>(
    engine: &Engine,
    remote: &Remote,
    request: &Request<B>,
) -> Result<Reply, Problem> {
    let head = RequestHead::new(request.method(), request.uri(), request.headers());
    authenticate(engine, &engine.active(), remote, head, TokenHeader::Authorization).await?;
    Ok(reply::json(openapi::document().to_owned(), None))
}

//! Routing, and what every response has in common.

use std::sync::Arc;

use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use tollgate_config::Scope;
use tollgate_document::did_you_mean;
use tollgate_engine::{ActiveConfig, OperationSpec, Principal, Remote};
use tollgate_http::{
    Problem, ProblemKind, RequestHead, TokenHeader, authenticate, json_with_status,
    method_not_allowed, problem_reply,
};
use tollgate_transport::BusyGuard;

use crate::body::{Body, Reply};
use crate::details::{ConfigDetails, PolicyDetails, Session};
use crate::{Admin, assets, watchers};

/// The headers of every response. Pages load nothing but the daemon's own files, and run no other
/// scripts; no other site may embed or read them.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
    ),
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The paths of the API, for messages.
const PATHS: [&str; 10] = [
    "/api/overview",
    "/api/events",
    "/api/session",
    "/api/config",
    "/api/keys",
    "/api/key",
    "/api/peek",
    "/api/reset",
    "/api/block",
    "/api/unblock",
];

/// The prefix of the pages of policies.
const POLICY: &str = "/api/policies/";

/// The resource at a path of the API.
enum Route<'p> {
    Overview,
    Events,
    Session,
    Config,
    Policy(&'p str),
    Keys,
    Operation(&'static OperationSpec),
}

impl Admin {
    /// Answers one request.
    pub async fn answer(
        &self,
        remote: &Remote,
        request: Request<Incoming>,
        busy: BusyGuard,
    ) -> Reply {
        let result = match request.uri().path().starts_with("/api/") {
            true => self.answer_api(remote, request, busy).await,
            false => self.answer_page(remote, &request).map(|reply| reply.map(Body::from)),
        };
        let mut reply = result.unwrap_or_else(|problem| problem_reply(&problem).map(Body::from));
        for (name, value) in HEADERS {
            reply.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        reply
    }

    /// A file of the dashboard, which contains no data and needs no token. Pages of other sites may
    /// link to it.
    fn answer_page(
        &self,
        remote: &Remote,
        request: &Request<Incoming>,
    ) -> Result<tollgate_http::Reply, Problem> {
        head(request).check_host(remote, &self.engine.active())?;
        let path = request.uri().path();
        let file = assets::find(path, request.headers()).ok_or_else(|| unknown_path(path))?;
        check_get(request)?;
        Ok(file)
    }

    async fn answer_api(
        &self,
        remote: &Remote,
        request: Request<Incoming>,
        busy: BusyGuard,
    ) -> Result<Reply, Problem> {
        let path = request.uri().path().to_owned();
        let route = match route(request.method(), &path)? {
            Route::Keys => {
                let reply = tollgate_http::answer_page_keys(&self.engine, remote, &request).await;
                return reply.map(|reply| reply.map(Body::from));
            }
            Route::Operation(spec) => {
                let reply = tollgate_http::answer_page(&self.engine, remote, spec, request).await;
                return reply.map(|reply| reply.map(Body::from));
            }
            route => route,
        };
        let active = self.engine.active();
        let head = head(&request);
        head.check_origin(remote, &active)?;
        let header = TokenHeader::Authorization;
        let principal = authenticate(&self.engine, &active, remote, head, header).await?;
        principal.authorize(&[Scope::Read], "the dashboard")?;
        match route {
            Route::Overview => Ok(json(&self.overview(usize::MAX))),
            Route::Events => self.events(busy),
            Route::Session => Ok(json(&Session::new(principal))),
            Route::Config => self.config(principal),
            Route::Policy(name) => self.policy(&active, principal, name),
            Route::Keys | Route::Operation(_) => unreachable!("it was answered"),
        }
    }

    /// The event stream.
    fn events(&self, busy: BusyGuard) -> Result<Reply, Problem> {
        let first = event(&self.overview(usize::MAX));
        let now = self.engine.clock().now();
        let Some(events) = self.watchers.open(first, now, busy.watch()) else {
            let detail = format!(
                "{} clients watch the daemon already; close another dashboard",
                watchers::MAX_WATCHERS
            );
            let body =
                serde_json::json!({ "type": "about:blank", "status": 503, "detail": detail });
            let reply = json_with_status(StatusCode::SERVICE_UNAVAILABLE, body.to_string());
            return Ok(reply.map(Body::from));
        };
        let mut reply = Response::new(Body::events(events, Arc::clone(&self.engine)));
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Proxies that buffer would delay events.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(reply)
    }

    fn config(&self, principal: Principal<'_>) -> Result<Reply, Problem> {
        // It names keys of every policy.
        principal.authorize_policy("*")?;
        let (error, warnings) = (self.reload_error.borrow(), self.config_warnings.borrow());
        let yaml = self.lock_yaml().clone();
        let details =
            ConfigDetails::new(&self.engine, error.as_deref(), &warnings, yaml.as_deref());
        Ok(json(&details))
    }

    fn policy(
        &self,
        active: &ActiveConfig,
        principal: Principal<'_>,
        name: &str,
    ) -> Result<Reply, Problem> {
        let name = percent_decode_str(name).decode_utf8_lossy();
        principal.authorize_policy(&name)?;
        let history = self.lock_history();
        let details = PolicyDetails::new(&self.engine, active, &history, &name);
        let details = details.ok_or_else(|| {
            let shown: String = name.chars().take(tollgate_engine::MAX_QUOTED_LEN).collect();
            let known = active.policies.iter().map(tollgate::Policy::name);
            let hint = did_you_mean(&shown, known).map(|hint| format!("; {hint}"));
            let hint = hint.unwrap_or_default();
            let detail = format!("there is no policy {shown:?}{hint}");
            Problem::new(ProblemKind::UnknownPolicy, detail)
        })?;
        Ok(json(&details))
    }
}

fn head(request: &Request<Incoming>) -> RequestHead<'_> {
    RequestHead::new(request.method(), request.uri(), request.headers()).to_pages()
}

fn route<'p>(method: &Method, path: &'p str) -> Result<Route<'p>, Problem> {
    let name = path.strip_prefix("/api/").unwrap_or_default();
    let route = match name {
        "overview" => Route::Overview,
        "events" => Route::Events,
        "session" => Route::Session,
        "config" => Route::Config,
        "keys" => Route::Keys,
        _ => match path.strip_prefix(POLICY) {
            Some(name) if !name.is_empty() => Route::Policy(name),
            _ => Route::Operation(operation(name).ok_or_else(|| unknown_path(path))?),
        },
    };
    let allow = match &route {
        Route::Operation(_) if name != "key" => "POST",
        _ => "GET",
    };
    if *method == allow { Ok(route) } else { Err(method_not_allowed(method, path, allow)) }
}

/// The operation that a page requests under this name.
fn operation(name: &str) -> Option<&'static OperationSpec> {
    match name {
        "key" => OperationSpec::from_name("inspect"),
        "peek" | "reset" | "block" | "unblock" => OperationSpec::from_name(name),
        _ => None,
    }
}

fn check_get(request: &Request<Incoming>) -> Result<(), Problem> {
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(method_not_allowed(request.method(), request.uri().path(), "GET, HEAD")),
    }
}

fn unknown_path(path: &str) -> Problem {
    let shown: String = path.chars().take(tollgate_engine::MAX_QUOTED_LEN).collect();
    let hint =
        did_you_mean(path, PATHS.into_iter()).unwrap_or_else(|| "the dashboard is at /".to_owned());
    Problem::new(ProblemKind::UnknownPath, format!("unknown path {shown:?}; {hint}"))
}

fn json(value: &impl Serialize) -> Reply {
    json_with_status(StatusCode::OK, to_json(value)).map(Body::from)
}

/// The next event of the stream.
pub(crate) fn event(overview: &impl Serialize) -> Bytes {
    format!("event: overview\ndata: {}\n\n", to_json(overview)).into()
}

#[expect(clippy::expect_used, reason = "the keys of every object are texts")]
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("every value is JSON")
}

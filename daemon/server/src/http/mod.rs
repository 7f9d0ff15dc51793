//! HTTP: which path is what, and the way of a request from its bytes to its answer.

mod asked;
mod body;
mod caller;
mod envoy;
mod exchange;
mod field;
mod forward;
mod headers;
mod health;
mod json;
mod number;
mod object;
mod openapi;
mod problem;
mod reply;
mod verbs;
mod writer;
mod written;

use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Request};
use tollgate::{Decision, Policy};

pub(crate) use self::body::read;
pub(crate) use self::caller::{Bears, Caller};
pub(crate) use self::exchange::Exchange;
use self::field::Field;
use self::forward::Dialect;
pub(crate) use self::headers::write as write_headers;
use self::object::Object;
pub(crate) use self::problem::{Kind, Problem};
pub(crate) use self::reply::{Reply, page, text};
use self::verbs::{SPOKEN, Spoken};
use crate::audit::Record;
use crate::config::Scope;
use crate::daemon::Daemon;
use crate::listener::Remote;
use crate::nearest::did_you_mean;
use crate::role::Role;

/// A decision as `/v1` answers it.
#[must_use]
pub fn decision_json(policy: &Policy, decision: &Decision) -> String {
    json::decision(policy, decision, json::Shape::Decision)
}

/// What a path is.
enum Route {
    Live,
    Ready,
    /// `/healthcheck`.
    Healthcheck,
    /// `/json`.
    RateLimit,
    OpenApi,
    Operation(&'static Spoken),
    Forward(&'static Dialect),
}

/// Answers one request.
pub(crate) async fn answer(daemon: &Daemon, remote: &Remote, request: Request<Incoming>) -> Reply {
    let answered = match route(request.method(), request.uri().path()) {
        // Probes are not counted among the requests.
        Ok(Route::Live) => return health::live(),
        Ok(Route::Ready) => return health::ready(daemon, request.uri().query()).await,
        Ok(Route::Healthcheck) => return envoy::healthcheck(daemon),
        Ok(Route::RateLimit) => envoy::limit(daemon, remote, request).await,
        Ok(Route::OpenApi) => answer_openapi(daemon, remote, request.headers()),
        Ok(Route::Operation(spoken)) => answer_verb(daemon, remote, spoken, request).await,
        Ok(Route::Forward(dialect)) => Ok(answer_gateway(daemon, remote, dialect, request).await),
        Err(problem) => Err(problem),
    };
    let reply = answered.unwrap_or_else(|problem| reply::problem(&problem));
    daemon.metrics.traffic(Role::Http).answered(reply.status());
    reply
}

/// Answers a request about whether the daemon lives, if that is what it is about.
pub(crate) async fn probe(daemon: &Daemon, request: &Request<Incoming>) -> Option<Reply> {
    let path = request.uri().path();
    match route(request.method(), path) {
        Ok(Route::Live) => Some(health::live()),
        Ok(Route::Ready) => Some(health::ready(daemon, request.uri().query()).await),
        Err(problem) if matches!(path, "/livez" | "/readyz") => Some(reply::problem(&problem)),
        _ => None,
    }
}

fn route(method: &Method, path: &str) -> Result<Route, Problem> {
    if let Some(dialect) = forward::of_path(path) {
        return dialect.map(Route::Forward);
    }
    let spoken = path.strip_prefix("/v1/").and_then(verbs::of_name);
    match (path, spoken) {
        ("/livez" | "/readyz" | "/healthcheck" | "/openapi.json", _)
            if !matches!(*method, Method::GET | Method::HEAD) =>
        {
            Err(no_method(method, path, "GET, HEAD"))
        }
        ("/livez", _) => Ok(Route::Live),
        ("/readyz", _) => Ok(Route::Ready),
        ("/healthcheck", _) => Ok(Route::Healthcheck),
        ("/openapi.json", _) => Ok(Route::OpenApi),
        ("/json", _) if *method == Method::POST => Ok(Route::RateLimit),
        ("/json", _) => Err(no_method(method, path, "POST")),
        (_, Some(spoken)) if *method == Method::POST => Ok(Route::Operation(spoken)),
        (_, Some(spoken)) if spoken.by_query && *method == Method::GET => {
            Ok(Route::Operation(spoken))
        }
        (_, Some(spoken)) => {
            Err(no_method(method, path, if spoken.by_query { "GET, POST" } else { "POST" }))
        }
        (_, None) => Err(no_path(path)),
    }
}

fn no_method(method: &Method, path: &str, allow: &'static str) -> Problem {
    let detail = format!("{path} is not for {method}; it takes {allow}");
    Problem::new(Kind::Method, detail).allowing(allow)
}

fn no_path(path: &str) -> Problem {
    let paths: Vec<_> = SPOKEN.iter().map(|x| format!("/v1/{}", x.name)).collect();
    let known = paths.iter().map(|path| &**path).chain([
        "/livez",
        "/readyz",
        "/healthcheck",
        "/json",
        "/openapi.json",
    ]);
    let hint = did_you_mean(path, known).unwrap_or_else(|| "decisions are at /v1/check".to_owned());
    let shown: String = path.chars().take(64).collect();
    Problem::new(Kind::UnknownPath, format!("there is no {shown:?}; {hint}"))
}

/// Answers a gateway, whatever the method; a body is not looked at.
async fn answer_gateway(
    daemon: &Daemon,
    remote: &Remote,
    dialect: &'static Dialect,
    request: Request<Incoming>,
) -> Reply {
    let (head, _) = request.into_parts();
    let live = daemon.live();
    let caller = Caller::of(remote, &head.headers, Bears::TollgateToken, &live.access);
    let caller = caller.and_then(|caller| {
        caller.must_have(&[Scope::Check], "forward-auth")?;
        Ok(caller)
    });
    match caller {
        Ok(caller) => {
            let exchange = Exchange { daemon, live: &live, caller, record: None };
            forward::answer(dialect, &head, &exchange).await
        }
        Err(problem) => {
            daemon.failures.add(daemon.clock.now(), remote);
            // Not 5xx: a gateway that fails open would let its clients pass for want of a token.
            reply::problem(&problem)
        }
    }
}

/// What describes the interface; with tokens, to whoever has one.
fn answer_openapi(daemon: &Daemon, remote: &Remote, headers: &HeaderMap) -> Result<Reply, Problem> {
    Caller::of(remote, headers, Bears::Authorization, &daemon.live().access)
        .inspect_err(|_| daemon.failures.add(daemon.clock.now(), remote))?;
    Ok(reply::json(openapi::document().to_owned(), None))
}

async fn answer_verb(
    daemon: &Daemon,
    remote: &Remote,
    spoken: &'static Spoken,
    request: Request<Incoming>,
) -> Result<Reply, Problem> {
    let (head, body) = request.into_parts();
    let live = daemon.live();
    let caller = Caller::of(remote, &head.headers, Bears::Authorization, &live.access);
    let who = caller.as_ref().map_or("nobody known", |caller| caller.who.name());
    let record = spoken.is_for_operators().then(|| Record::new(spoken.name, who, remote));
    let answered = match caller {
        Ok(caller) => {
            let exchange = Exchange { daemon, live: &live, caller, record: record.as_ref() };
            answer_caller(&exchange, spoken, &head, body).await
        }
        Err(problem) => {
            daemon.failures.add(daemon.clock.now(), remote);
            Err(problem)
        }
    };
    if record.is_some() {
        daemon.metrics.audited(spoken.name);
    }
    match (record, &answered) {
        (Some(record), Ok(_)) => record.done(),
        (Some(record), Err(error)) if error.is_refusal() => record.refused(error.detail()),
        (Some(record), Err(error)) => record.failed(error.detail()),
        (None, _) => {}
    }
    answered
}

/// Answers a verb to whoever is known.
async fn answer_caller(
    exchange: &Exchange<'_>,
    spoken: &'static Spoken,
    head: &Parts,
    body: Incoming,
) -> Result<Reply, Problem> {
    if let Err(refusal) = exchange.caller.must_have(spoken.scopes, spoken.name) {
        if exchange.record.is_some() {
            tell_subject(exchange, spoken, body).await;
        }
        return Err(refusal);
    }
    if head.method == Method::GET {
        let query = head.uri.query().unwrap_or_default();
        let mut object = Object::of_query(query, spoken.fields_of_query)?;
        let told_by_status = told_by_status(&mut object)?;
        return verbs::answer(spoken, object, exchange, told_by_status).await;
    }
    let told_by_status = match head.uri.query() {
        None => true,
        Some(query) => told_by_status(&mut Object::of_query(query, &[Field::Status])?)?,
    };
    let body = read_body(exchange, body).await?;
    let object = Object::of_json(body::text(&body)?, spoken.fields)?;
    verbs::answer(spoken, object, exchange, told_by_status).await
}

async fn read_body(exchange: &Exchange<'_>, body: Incoming) -> Result<Bytes, Problem> {
    let bounds = &exchange.live.bounds;
    read(body, bounds.body, bounds.header_timeout).await
}

/// Lets the audit know what a request that is refused is about, as far as it can be read.
async fn tell_subject(exchange: &Exchange<'_>, spoken: &'static Spoken, body: Incoming) {
    let Ok(body) = read_body(exchange, body).await else { return };
    let object = body::text(&body).and_then(|x| Object::of_json(x, spoken.fields));
    if let Ok(object) = object {
        verbs::tell_subject(&object, exchange);
    }
}

/// Whether the status of the answer tells the verdict: unless `?status=200` says no.
fn told_by_status(query: &mut Object<'_>) -> Result<bool, Problem> {
    let Some(status) = query.take(Field::Status) else { return Ok(true) };
    if status.text(Field::Status)? == "200" {
        return Ok(false);
    }
    let detail = "status may be 200, so that every decision has it, or be left out";
    Err(Problem::bad(detail).of(Field::Status).with_value(&status.json()))
}

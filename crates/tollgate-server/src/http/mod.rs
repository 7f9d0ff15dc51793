//! HTTP: which path is what, and the way of a request from its bytes to its answer.

mod asked;
mod body;
mod caller;
mod exchange;
mod field;
mod forward;
mod headers;
mod health;
mod json;
mod number;
mod object;
mod problem;
mod reply;
mod verbs;
mod writer;
mod written;

use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::{Method, Request};
use tollgate::{Decision, Policy};

use self::caller::Caller;
use self::exchange::Exchange;
use self::field::Field;
use self::forward::Dialect;
use self::object::Object;
use self::problem::{Kind, Problem};
pub(crate) use self::reply::{Reply, page, text};
use self::verbs::{SPOKEN, Spoken};
use crate::daemon::Daemon;
use crate::metrics::Listener;
use crate::nearest::did_you_mean;

/// A decision as `/v1` answers it.
#[must_use]
pub fn decision_json(policy: &Policy, decision: &Decision) -> String {
    json::decision(policy, decision, json::Shape::Decision)
}

/// What a path is.
enum Route {
    Live,
    Ready,
    Verb(&'static Spoken),
    Forward(&'static Dialect),
}

/// Answers one request.
pub(crate) async fn answer(daemon: &Daemon, peer: SocketAddr, request: Request<Incoming>) -> Reply {
    let answered = match route(request.method(), request.uri().path()) {
        // Probes are not counted among the requests.
        Ok(Route::Live) => return health::live(),
        Ok(Route::Ready) => return health::ready(daemon, request.uri().query()).await,
        Ok(Route::Verb(spoken)) => answer_verb(daemon, peer, spoken, request).await,
        Ok(Route::Forward(dialect)) => Ok(answer_gateway(daemon, peer, dialect, request).await),
        Err(problem) => Err(problem),
    };
    let reply = answered.unwrap_or_else(|problem| reply::problem(&problem));
    daemon.metrics.traffic(Listener::Http).answered(reply.status());
    reply
}

fn route(method: &Method, path: &str) -> Result<Route, Problem> {
    if let Some(dialect) = forward::of_path(path) {
        return dialect.map(Route::Forward);
    }
    let spoken = path.strip_prefix("/v1/").and_then(verbs::of_name);
    match (path, spoken) {
        ("/livez" | "/readyz", _) if !matches!(*method, Method::GET | Method::HEAD) => {
            Err(no_method(method, path, "GET, HEAD"))
        }
        ("/livez", _) => Ok(Route::Live),
        ("/readyz", _) => Ok(Route::Ready),
        (_, Some(spoken)) if *method == Method::POST => Ok(Route::Verb(spoken)),
        (_, Some(spoken)) if spoken.by_query && *method == Method::GET => Ok(Route::Verb(spoken)),
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
    let paths: Vec<_> = SPOKEN.iter().map(|it| format!("/v1/{}", it.name)).collect();
    let known = paths.iter().map(|it| &**it).chain(["/livez", "/readyz"]);
    let hint = did_you_mean(path, known).unwrap_or_else(|| "decisions are at /v1/check".to_owned());
    let shown: String = path.chars().take(64).collect();
    Problem::new(Kind::UnknownPath, format!("there is no {shown:?}; {hint}"))
}

/// Answers a gateway, whatever the method; a body is not looked at.
async fn answer_gateway(
    daemon: &Daemon,
    peer: SocketAddr,
    dialect: &'static Dialect,
    request: Request<Incoming>,
) -> Reply {
    let (head, _) = request.into_parts();
    let live = daemon.live();
    let exchange = Exchange { daemon, live: &live, caller: Caller::new(peer, &head.headers) };
    forward::answer(dialect, &head, &exchange).await
}

async fn answer_verb(
    daemon: &Daemon,
    peer: SocketAddr,
    spoken: &'static Spoken,
    request: Request<Incoming>,
) -> Result<Reply, Problem> {
    let (head, body) = request.into_parts();
    let live = daemon.live();
    let exchange = Exchange { daemon, live: &live, caller: Caller::new(peer, &head.headers) };
    if spoken.for_operators {
        exchange.caller.must_operate(spoken.name)?;
    }
    if head.method == Method::GET {
        let query = head.uri.query().unwrap_or_default();
        let mut object = Object::of_query(query, spoken.fields_of_query)?;
        let told_by_status = told_by_status(&mut object)?;
        return verbs::answer(spoken, object, &exchange, told_by_status).await;
    }
    let told_by_status = match head.uri.query() {
        None => true,
        Some(query) => told_by_status(&mut Object::of_query(query, &[Field::Status])?)?,
    };
    let bounds = &live.bounds;
    let body = body::read(body, bounds.body, bounds.header_timeout).await?;
    let object = Object::of_json(body::text(&body)?, spoken.fields)?;
    let reply = verbs::answer(spoken, object, &exchange, told_by_status).await?;
    if spoken.for_operators {
        daemon.metrics.audited(spoken.name);
    }
    Ok(reply)
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

//! `POST /json`: the rate limit service as JSON, in the JSON mapping of protobuf
//! (<https://protobuf.dev/programming-guides/json/>).

mod request;
mod response;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tollgate_engine::{Engine, Remote, RequestContext, Surface};

use super::answer::answer as answer_request;
use super::error::EnvoyError;
use super::{EnvoyContext, EnvoyState};
use tollgate_http::{
    Problem, Reply, TokenHeader, authenticate, problem_reply, rate_limit, read, text, traceparent,
};

/// Answers a request. An invalid one gets the two words that clients of envoyproxy/ratelimit
/// expect; other errors are problems, as elsewhere.
pub async fn answer(
    engine: &Engine,
    state: &EnvoyState,
    remote: &Remote,
    request: Request<Incoming>,
) -> Reply {
    match try_answer(engine, state, remote, request).await {
        Ok(reply) => reply,
        Err(problem) if !problem.is_bad_input() => problem_reply(&problem),
        Err(_) => bad_request(),
    }
}

async fn try_answer(
    engine: &Engine,
    state: &EnvoyState,
    remote: &Remote,
    request: Request<Incoming>,
) -> Result<Reply, Problem> {
    let (head, body) = request.into_parts();
    let active = engine.active();
    let header = TokenHeader::Authorization;
    let principal = authenticate(engine, &active, remote, &head.headers, header)?;
    let body = read(body, active.bounds.body, active.bounds.header_timeout).await?;
    let Ok(message) = request::request(&body) else { return Ok(bad_request()) };
    let request = RequestContext {
        engine,
        active: &active,
        principal,
        surface: Surface::Envoy,
        traceparent: traceparent(&head.headers),
    };
    let context = EnvoyContext { request, state, headers: &head.headers };
    match answer_request(&context, &message).await {
        Ok(response) => {
            let code = response.overall_code();
            Ok(rate_limit(response::response(&response), code))
        }
        Err(EnvoyError::Problem(problem)) => Err(problem),
        Err(EnvoyError::Reference(_) | EnvoyError::StoreUnavailable) => Ok(bad_request()),
    }
}

fn bad_request() -> Reply {
    text(StatusCode::BAD_REQUEST, "Bad Request\n")
}

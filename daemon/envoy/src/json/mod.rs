//! `POST /json`: the rate limit service as JSON, in the JSON mapping of protobuf
//! (<https://protobuf.dev/programming-guides/json/>).

mod request;
mod response;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tollgate_engine::{Engine, Remote};
use tollgate_http::{Problem, Reply, RequestHead, json_with_status, problem_reply, read, text};

use crate::error::EnvoyError;
use crate::{EnvoyContext, EnvoyState};

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
    let request_head = RequestHead::from(&head);
    request_head.check_origin(remote, &active)?;
    let context = EnvoyContext::authenticate(state, engine, &active, remote, request_head).await?;
    let body = read(body, &active.bounds).await?;
    let Ok(message) = request::parse(&body) else { return Ok(bad_request()) };
    match crate::answer::answer(&context, &message).await {
        Ok(response) => {
            let status = match response.overall_code() {
                Code::Ok => StatusCode::OK,
                Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
                Code::Unknown => unreachable!("a response has a code"),
            };
            Ok(json_with_status(status, response::to_json(&response)))
        }
        Err(EnvoyError::Problem(problem)) => Err(problem),
        Err(EnvoyError::Compat(_) | EnvoyError::StoreUnavailable) => Ok(bad_request()),
    }
}

fn bad_request() -> Reply {
    text(StatusCode::BAD_REQUEST, "Bad Request\n")
}

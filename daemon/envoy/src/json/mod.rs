//! `POST /json`: the rate limit service as JSON, in the JSON mapping of protobuf
//! (<https://protobuf.dev/programming-guides/json/>).

mod request;
mod response;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tollgate_engine::{Engine, Remote};
use tollgate_http::{Problem, Reply, RequestHead, json_with_status, problem_reply, read, text};
use tonic::Status;

use crate::error::EnvoyError;
use crate::{EnvoyContext, EnvoyState, bounded};

/// Answers a request. An invalid one gets the two words that clients of envoyproxy/ratelimit
/// expect, and the reason is logged; other errors are problems, as elsewhere.
pub async fn answer(
    engine: &Engine,
    state: &EnvoyState,
    remote: &Remote,
    request: Request<Incoming>,
) -> Reply {
    match try_answer(engine, state, remote, request).await {
        Ok(reply) => reply,
        Err(EnvoyError::Problem(problem)) if !problem.is_bad_input() => problem_reply(&problem),
        Err(error) => {
            report_rejected(engine, state, error);
            text(StatusCode::BAD_REQUEST, "Bad Request\n")
        }
    }
}

async fn try_answer(
    engine: &Engine,
    state: &EnvoyState,
    remote: &Remote,
    request: Request<Incoming>,
) -> Result<Reply, EnvoyError> {
    let (head, body) = request.into_parts();
    let active = engine.active();
    let request_head = RequestHead::from(&head);
    request_head.check_origin(remote, &active)?;
    let context = EnvoyContext::authenticate(state, engine, &active, remote, request_head).await?;
    let body = read(body, &active.bounds).await?;
    let message = request::parse(&body).map_err(|error| Problem::bad_request(error.to_string()))?;
    let response = crate::answer::answer(&context, &message).await?;
    let status = match response.overall_code() {
        Code::Ok => StatusCode::OK,
        Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
        Code::Unknown => unreachable!("a response has a code"),
    };
    Ok(json_with_status(status, response::to_json(&response)))
}

/// Logs, at most every few seconds, why a request got the two words.
fn report_rejected(engine: &Engine, state: &EnvoyState, error: EnvoyError) {
    if let Some((requests, all)) = state.rejected_json.count(engine.clock().now()) {
        let error = bounded(Status::from(error).message());
        tracing::warn!(error, requests, all, "a request to /json got 400 Bad Request");
    }
}

//! Responses: status and headers.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use tollgate::{Answer, Decision, Micros, Reason};

use super::problem::Problem;

/// A response of the HTTP listeners.
pub type Reply = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"tollgate\"");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn reply(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// The result of a request as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) never: bool,
    pub(super) retry_after: Option<Micros>,
    /// Whether the only reason for a denial is that the store is unavailable.
    pub(super) is_unavailable: bool,
}

impl Verdict {
    pub(super) fn new(decision: &Decision) -> Self {
        Verdict {
            allowed: decision.allowed,
            never: decision.never,
            retry_after: decision.retry_after,
            is_unavailable: is_unavailable(decision),
        }
    }

    pub(super) fn from_answer(answer: &Answer) -> Self {
        let mut denied = answer.decisions.iter().filter(|decision| !decision.allowed);
        Verdict {
            allowed: answer.allowed(),
            never: answer.never(),
            retry_after: answer.retry_after(),
            is_unavailable: denied.all(is_unavailable),
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Verdict { allowed: true, .. } => StatusCode::OK,
            Verdict { is_unavailable: true, .. } => StatusCode::SERVICE_UNAVAILABLE,
            Verdict { never: true, .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// Whether a decision was made without the store and without limits.
pub(crate) fn is_unavailable(decision: &Decision) -> bool {
    decision.degraded && decision.reason == Reason::Store
}

/// A JSON response. With a verdict, its status reflects that, and a denial has `Retry-After`.
pub(super) fn json(body: String, verdict: Option<Verdict>) -> Reply {
    let status = verdict.map_or(StatusCode::OK, Verdict::status);
    let retry_after = verdict.and_then(|verdict| verdict.retry_after);
    let is_denied = status == StatusCode::TOO_MANY_REQUESTS;
    with_retry_after(reply(status, JSON, body), retry_after.filter(|_| is_denied))
}

fn with_retry_after(mut reply: Reply, retry_after: Option<Micros>) -> Reply {
    if let Some(retry_after) = retry_after {
        reply.headers_mut().insert(RETRY_AFTER, retry_after.secs_rounded_up().into());
    }
    reply
}

/// A JSON response with a status.
pub fn json_with_status(status: StatusCode, body: String) -> Reply {
    reply(status, JSON, body)
}

/// An error response.
pub fn problem(problem: &Problem) -> Reply {
    let mut reply = reply(problem.status(), PROBLEM, problem.to_json());
    if let Some(methods) = problem.allow() {
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    }
    if problem.status() == StatusCode::UNAUTHORIZED {
        reply.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
    }
    if problem.is_unread() {
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

/// Lets a gateway admit a request.
pub(super) fn pass() -> Reply {
    let mut reply = Response::new(Full::default());
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Lets a gateway deny a request, with a body that its client may see.
pub(super) fn denial(status: StatusCode, body: String, retry_after: Option<Micros>) -> Reply {
    with_retry_after(reply(status, PROBLEM, body), retry_after)
}

/// A page of another content type.
pub fn page(kind: HeaderValue, body: String) -> Reply {
    reply(StatusCode::OK, kind, body)
}

/// Plain text.
pub fn text(status: StatusCode, line: impl Into<Bytes>) -> Reply {
    reply(status, TEXT, line)
}

//! Rejected requests, and the responses to them.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use tollgate::{Answer, Decision, Micros, Policy, Reason, StoreError};

use crate::layer::Config;
use crate::rule::RuleCheck;
use crate::{BoxError, grpc, problem};

/// Why a request is not passed to the inner service.
#[derive(Debug)]
#[non_exhaustive]
pub enum Rejection {
    /// A policy denies it: 429, or 503 if it denies because the store is unavailable.
    Denied(Denial),
    /// It has no key for a rule whose fallback is [`Fallback::Reject`](crate::Fallback::Reject): 400.
    MissingKey,
    /// Its key, policy or cost cannot be determined: 400.
    Invalid(BoxError),
    /// The limiter refused the checks of the rules: 500.
    Failed(StoreError),
}

impl Rejection {
    /// The status of the default response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Rejection::Denied(denial) if denial.is_unavailable() => StatusCode::SERVICE_UNAVAILABLE,
            Rejection::Denied(_) => StatusCode::TOO_MANY_REQUESTS,
            Rejection::MissingKey | Rejection::Invalid(_) => StatusCode::BAD_REQUEST,
            Rejection::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What the client is told. It has no details that a client could exploit.
    pub(crate) fn detail(&self) -> String {
        match self {
            Rejection::Denied(denial) if denial.is_unavailable() => {
                "the limits are unavailable at the moment; try again later".to_owned()
            }
            Rejection::Denied(denial) => match denial.retry_after {
                Some(wait) => format!("try again in {wait} s"),
                None => "waiting does not help".to_owned(),
            },
            Rejection::MissingKey => "the request does not identify its client".to_owned(),
            Rejection::Invalid(_) => {
                "the request does not identify its client correctly".to_owned()
            }
            Rejection::Failed(_) => "the request could not be checked".to_owned(),
        }
    }
}

/// Describes the rejection to the operator, with the error of an extractor.
impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Denied(_) => write!(f, "denied: {}", self.detail()),
            Rejection::MissingKey => f.write_str(
                "the request has no key for a rule: provide the address (ConnectInfo), extension or \
                 header that its key is read from, or set Rule::on_missing",
            ),
            Rejection::Invalid(error) => write!(f, "invalid key, policy or cost: {error}"),
            Rejection::Failed(error) => write!(f, "the checks cannot be decided: {error}"),
        }
    }
}

/// A denial: the policies, and their decisions.
#[derive(Clone)]
pub struct Denial {
    checks: Vec<RuleCheck>,
    decisions: Vec<Decision>,
    pub(crate) retry_after: Option<Micros>,
}

impl Denial {
    pub(crate) fn new(checks: Vec<RuleCheck>, answer: Answer) -> Self {
        let retry_after = answer.retry_after();
        Denial { checks, decisions: answer.decisions, retry_after }
    }

    /// The denial of a request that would wait too long in a queue: it is admitted by the limits.
    pub(crate) fn too_long(
        checks: Vec<RuleCheck>,
        decisions: Vec<Decision>,
        too_long: Duration,
    ) -> Self {
        Denial { checks, decisions, retry_after: Some(too_long.into()) }
    }

    /// The policies that were checked and their decisions, in the order of the rules. At least one
    /// denies, unless the request would have had to wait too long in a queue.
    pub fn decisions(&self) -> impl Iterator<Item = (&Policy, &Decision)> + Clone {
        self.checks.iter().map(|check| &check.policy).zip(&self.decisions)
    }

    /// Who is denied: the policies that deny, the key of each, and its decision. A key is the bytes that
    /// identify a client, which may be personal data.
    pub fn denied(&self) -> impl Iterator<Item = (&Policy, &[u8], &Decision)> {
        let checks = self.checks.iter().zip(&self.decisions);
        let denied = checks.filter(|(_, decision)| !decision.allowed);
        denied.map(|(check, decision)| (&check.policy, &*check.key, decision))
    }

    /// The time after which the same request is admitted if there is no other traffic; `None` if
    /// there is no such time, or if it is unknown.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from)
    }

    /// Whether a policy denies because the store is unavailable, without regard to its limits.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        let is_unavailable = |decision: &Decision| {
            !decision.allowed && decision.degraded && decision.reason == Reason::Store
        };
        self.decisions.iter().any(is_unavailable)
    }

    /// Whether a limit or its ban denies, in contrast to a block, a list or an unavailable store.
    pub(crate) fn is_by_limit(&self) -> bool {
        let mut denied = self.decisions.iter().filter(|decision| !decision.allowed).peekable();
        let is_by_limit = |denied: &Decision| {
            matches!(denied.reason, Reason::Limit | Reason::Never | Reason::Banned)
        };
        denied.peek().is_none() || denied.any(is_by_limit)
    }
}

impl fmt::Debug for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys may be personal data.
        let decisions = self.decisions().map(|(policy, decision)| (policy.name(), decision));
        f.debug_map().entries(decisions).finish()
    }
}

/// The format of the body of a rejection. Requests of gRPC always get a gRPC status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyFormat {
    /// `application/problem+json` as in RFC 9457.
    #[default]
    Json,
    /// Plain text.
    Text,
}

/// The response to a rejected request.
pub(crate) fn response(config: &Config, rejection: &Rejection, head: &Parts) -> Response<Bytes> {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "tollgate_tower", status = rejection.status().as_u16(), "{rejection}");
    let mut headers = HeaderMap::new();
    if let Rejection::Denied(denial) = rejection {
        tollgate_headers::write(&config.header_styles, &mut headers, denial.decisions());
        if let Some(retry_after) = denial.retry_after.filter(|_| !denial.is_unavailable()) {
            headers.insert(RETRY_AFTER, retry_after.secs_rounded_up().into());
        }
    }
    if let Some(content_type) = grpc::content_type(head) {
        grpc::insert_status(&mut headers, content_type, rejection);
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = headers;
        return response;
    }
    let (content_type, body) = match config.body_format {
        BodyFormat::Json => ("application/problem+json", problem::json(rejection)),
        BodyFormat::Text => ("text/plain; charset=utf-8", format!("{}\n", rejection.detail())),
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = rejection.status();
    *response.headers_mut() = headers;
    config.map_rejection(rejection, head, response)
}

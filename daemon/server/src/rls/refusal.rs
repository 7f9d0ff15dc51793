//! Why a request got no decision.

use tonic::{Code, Status};

use crate::http::{Kind, Problem};
use crate::xds::Awaited;

/// Why a request got no decision.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// As every surface says it.
    Problem(Problem),
    /// In the words of envoyproxy/ratelimit, which those who are used to it look for.
    Reference(&'static str),
    /// The store gave no answer, and nothing stands in for it.
    StoreAway,
}

impl From<Problem> for Refusal {
    fn from(it: Problem) -> Self {
        Refusal::Problem(it)
    }
}

impl From<Awaited> for Refusal {
    fn from(_: Awaited) -> Self {
        Refusal::Reference("no rate limit configuration loaded")
    }
}

impl From<Refusal> for Status {
    fn from(it: Refusal) -> Self {
        match it {
            Refusal::Problem(problem) => Status::new(code(problem.kind()), problem.detail()),
            Refusal::Reference(text) => Status::unknown(text),
            Refusal::StoreAway => Status::unknown("the store gave no answer"),
        }
    }
}

fn code(kind: Kind) -> Code {
    match kind {
        Kind::BadInput => Code::InvalidArgument,
        Kind::Unauthorized => Code::Unauthenticated,
        Kind::Forbidden | Kind::TokenLacks => Code::PermissionDenied,
        Kind::UnknownPolicy => Code::NotFound,
        Kind::UnknownPath | Kind::Method => Code::Unimplemented,
        Kind::BodyTimeout => Code::DeadlineExceeded,
        Kind::RequestIdReused => Code::AlreadyExists,
        Kind::BodyTooLarge => Code::ResourceExhausted,
        Kind::NoDecision => Code::Internal,
        Kind::StoreUnavailable => Code::Unavailable,
    }
}

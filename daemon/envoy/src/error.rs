//! Errors of the rate limit service.

use tonic::{Code, Status};

use crate::xds::NoLimits;
use tollgate_http::{Problem, ProblemKind};

/// An error of the rate limit service.
#[derive(Clone, Debug)]
pub(crate) enum EnvoyError {
    /// An error that other interfaces have too.
    Problem(Problem),
    /// An error in the words of envoyproxy/ratelimit, which its users search for.
    Compat(&'static str),
    /// The store is unavailable, and nothing is decided without it.
    StoreUnavailable,
}

impl EnvoyError {
    /// Whether the client lacks a right.
    pub(crate) fn is_forbidden(&self) -> bool {
        let EnvoyError::Problem(problem) = self else { return false };
        matches!(problem.kind(), ProblemKind::Forbidden | ProblemKind::TokenLacks)
    }
}

impl From<Problem> for EnvoyError {
    fn from(error: Problem) -> Self {
        EnvoyError::Problem(error)
    }
}

impl From<tollgate_engine::Error> for EnvoyError {
    fn from(error: tollgate_engine::Error) -> Self {
        EnvoyError::Problem(error.into())
    }
}

impl From<NoLimits> for EnvoyError {
    fn from(_: NoLimits) -> Self {
        EnvoyError::Compat("no rate limit configuration loaded")
    }
}

impl From<EnvoyError> for Status {
    fn from(error: EnvoyError) -> Self {
        match error {
            EnvoyError::Problem(problem) => Status::new(code(problem.kind()), problem.detail()),
            EnvoyError::Compat(text) => Status::unknown(text),
            EnvoyError::StoreUnavailable => Status::unknown("store unavailable"),
        }
    }
}

fn code(kind: ProblemKind) -> Code {
    match kind {
        ProblemKind::BadInput => Code::InvalidArgument,
        ProblemKind::Unauthorized => Code::Unauthenticated,
        ProblemKind::Forbidden | ProblemKind::TokenLacks => Code::PermissionDenied,
        ProblemKind::UnknownPolicy | ProblemKind::UnknownCharge => Code::NotFound,
        ProblemKind::UnknownPath | ProblemKind::Method => Code::Unimplemented,
        ProblemKind::BodyTimeout => Code::DeadlineExceeded,
        ProblemKind::RequestIdReused | ProblemKind::ChargeSettled => Code::AlreadyExists,
        ProblemKind::BodyTooLarge => Code::ResourceExhausted,
        ProblemKind::NoDecision => Code::Internal,
        ProblemKind::StoreUnavailable => Code::Unavailable,
    }
}

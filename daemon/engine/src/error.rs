//! Errors in terms that every protocol can map to its own.

use std::fmt;

use tollgate::{Policy, RequestError, StoreError};

use crate::parameter::Parameter;

/// The category of an error. Each protocol has a status or code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid.
    BadRequest,
    /// There is no token, or an invalid one.
    Unauthenticated,
    /// No tokens are configured, and an operator's request came from a client that is none.
    NotOperator,
    /// The token lacks a scope, or does not permit access to the policy.
    InsufficientToken,
    /// No policy has this name.
    UnknownPolicy,
    /// The request id was used for a different request.
    RequestIdReused,
    /// No charge is known for the request id of a settlement.
    UnknownCharge,
    /// The charge was settled with another cost.
    ChargeSettled,
    /// The store is unavailable, and the operation has no answer without it.
    StoreUnavailable,
}

/// The value at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorValue {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
}

/// Why a request was not executed: the category, a message with the remedy, and the parameter at
/// fault where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    detail: String,
    parameter: Option<Parameter>,
    value: Option<ErrorValue>,
}

impl Error {
    /// An error of this kind; `detail` says what is wrong and how to fix it.
    #[must_use]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Error(Box::new(Parts { kind, detail: detail.into(), parameter: None, value: None }))
    }

    /// An invalid request.
    #[must_use]
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Error::new(ErrorKind::BadRequest, detail)
    }

    /// Names the parameter at fault.
    #[must_use]
    pub fn with_parameter(mut self, parameter: Parameter) -> Self {
        self.0.parameter = Some(parameter);
        self
    }

    /// Adds the value at fault.
    #[must_use]
    pub fn with_value(mut self, value: ErrorValue) -> Self {
        self.0.value = Some(value);
        self
    }

    /// Adds the policy's name if the policy is at fault.
    pub(crate) fn with_policy(self, policy: &Policy) -> Self {
        match self.0.parameter {
            Some(Parameter::Policy) => self.with_value(ErrorValue::Text(policy.name().to_owned())),
            _ => self,
        }
    }

    /// Its category.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The explanation, with the remedy.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The parameter at fault.
    #[must_use]
    pub fn parameter(&self) -> Option<Parameter> {
        self.0.parameter
    }

    /// The value at fault.
    #[must_use]
    pub fn value(&self) -> Option<&ErrorValue> {
        self.0.value.as_ref()
    }

    /// Whether the principal lacks a right, as opposed to an error in the request or the store.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Unauthenticated | ErrorKind::NotOperator | ErrorKind::InsufficientToken
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Request(error) => error.into(),
            error => Error::new(ErrorKind::StoreUnavailable, error.to_string()),
        }
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        let (kind, parameter) = match error {
            RequestError::RequestIdReused => (ErrorKind::RequestIdReused, Parameter::RequestId),
            RequestError::UnknownCharge => (ErrorKind::UnknownCharge, Parameter::RequestId),
            RequestError::ChargeSettled => (ErrorKind::ChargeSettled, Parameter::Cost),
            RequestError::RequestId | RequestError::NoRequestId => {
                (ErrorKind::BadRequest, Parameter::RequestId)
            }
            RequestError::EmptyKey | RequestError::LongKey(_) => {
                (ErrorKind::BadRequest, Parameter::Key)
            }
            RequestError::ZeroAmount(_) | RequestError::LeaseCost => {
                (ErrorKind::BadRequest, Parameter::Cost)
            }
            RequestError::NeedsLease => (ErrorKind::BadRequest, Parameter::LeaseId),
            RequestError::NotReservable(_)
            | RequestError::Concurrent(_)
            | RequestError::NotConcurrent(_) => (ErrorKind::BadRequest, Parameter::Policy),
            _ => (ErrorKind::BadRequest, Parameter::Checks),
        };
        let mapped = Error::new(kind, error.to_string()).with_parameter(parameter);
        match error {
            RequestError::ZeroAmount(_) => mapped.with_value(ErrorValue::Number(0)),
            _ => mapped,
        }
    }
}

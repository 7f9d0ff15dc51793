//! Why a token cannot be used.

use std::fmt;

/// Why a token cannot be used, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessError {
    token: String,
    why: String,
}

impl AccessError {
    pub(super) fn of(token: &str, why: impl Into<String>) -> Self {
        AccessError { token: token.to_owned(), why: why.into() }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {:?}: {}", self.token, self.why)
    }
}

impl std::error::Error for AccessError {}

//! Why tokens cannot be used.

use std::fmt;

/// Why a token cannot be used, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessError {
    /// Which of the tokens, from 0.
    pub(crate) at: usize,
    token: String,
    why: String,
}

impl AccessError {
    pub(super) fn of(at: usize, token: &str, why: impl Into<String>) -> Self {
        AccessError { at, token: token.to_owned(), why: why.into() }
    }

    /// Why, without the token's name.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {:?}: {}", self.token, self.why)
    }
}

/// Every token that cannot be used; one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessErrors(pub(crate) Vec<AccessError>);

/// One a line.
impl fmt::Display for AccessErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n" };
            write!(f, "{between}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for AccessErrors {}

//! Errors in the configuration of tokens.

use std::fmt;

/// A token that cannot be used, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// The token's index in the configuration.
    pub index: usize,
    token: String,
    message: String,
}

impl AccessError {
    pub(super) fn new(index: usize, token: &str, message: String) -> Self {
        AccessError { index, token: token.to_owned(), message }
    }

    /// The message without the token's name.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {:?}: {}", self.token, self.message)
    }
}

/// All tokens that cannot be used; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessErrors(pub Vec<AccessError>);

/// One error per line.
impl fmt::Display for AccessErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for AccessErrors {}

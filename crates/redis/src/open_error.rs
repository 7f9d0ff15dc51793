//! Errors of opening a store.

use std::fmt;

/// Why a store cannot be opened. An unreachable server is not among the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// A part of the URL is invalid. Contains no password.
    Url {
        /// The part of the URL.
        part: &'static str,
        /// Its value; `None` if it may contain a secret.
        value: Option<Box<str>>,
        /// What to write instead.
        remedy: &'static str,
    },
    /// An option is invalid.
    Option {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Box<str>,
        /// What to write instead.
        remedy: &'static str,
    },
    /// There is no tokio runtime.
    NoRuntime,
}

impl OpenError {
    pub(crate) fn url(part: &'static str, value: &str, remedy: &'static str) -> Self {
        OpenError::Url { part, value: Some(value.into()), remedy }
    }

    pub(crate) const fn secret(part: &'static str, remedy: &'static str) -> Self {
        OpenError::Url { part, value: None, remedy }
    }

    pub(crate) fn option(
        name: &'static str,
        value: impl fmt::Display,
        remedy: &'static str,
    ) -> Self {
        OpenError::Option { name, value: value.to_string().into(), remedy }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Url { part, value: Some(value), remedy } => {
                write!(f, "the {part} {value:?} of the store's URL: {remedy}")
            }
            OpenError::Url { part, value: None, remedy } => {
                write!(f, "the {part} of the store's URL: {remedy}")
            }
            OpenError::Option { name, value, remedy } => {
                write!(f, "the option {name} = {value:?} of the store: {remedy}")
            }
            OpenError::NoRuntime => {
                f.write_str("a Redis store needs a tokio runtime: open it within one")
            }
        }
    }
}

impl std::error::Error for OpenError {}

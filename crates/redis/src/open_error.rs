//! Why a store cannot be opened.

use std::fmt;

/// Why a store cannot be opened: what is wrong with what was written. A server that is away is no
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// A part of the URL is not what it should be. Passwords are never in here.
    Url {
        /// Which part.
        part: &'static str,
        /// What stands there; nothing if it may be secret.
        value: Option<Box<str>>,
        /// What to write instead.
        remedy: &'static str,
    },
    /// An option is not what it should be.
    Option {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Box<str>,
        /// What to write instead.
        remedy: &'static str,
    },
    /// There is no tokio runtime here to connect in.
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
            OpenError::NoRuntime => f.write_str(
                "a Redis store connects in a tokio runtime, and there is none: open it in one",
            ),
        }
    }
}

impl std::error::Error for OpenError {}

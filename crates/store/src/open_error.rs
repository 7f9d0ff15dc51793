//! Errors of opening a store.

use std::fmt;

/// Why a store cannot be opened. It contains no password. An unreachable server is not among the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no known kind of store.
    Unknown(Box<str>),
    /// The scheme of the URL needs a feature of the crate `tollgate` that is disabled.
    Feature {
        /// The scheme.
        scheme: Box<str>,
        /// The feature.
        feature: &'static str,
    },
    /// A part of the URL is invalid.
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unknown(url) => write!(
                f,
                "unknown store {url:?}; expected memory, redis://HOST, redis+cluster://HOST,HOST, \
                 redis+sentinel://HOST,HOST/MASTER or redis+unix:///PATH (rediss for TLS; valkey \
                 works like redis)"
            ),
            OpenError::Feature { scheme, feature } => write!(
                f,
                "the scheme {scheme:?} of the store's URL needs the feature {feature}: \
                 cargo add tollgate --features {feature}"
            ),
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

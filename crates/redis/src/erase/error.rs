//! Why a namespace is not erased.

use std::fmt;

use tollgate_store::Failure;

/// Why [`RedisStore::flush_namespace`](crate::RedisStore::flush_namespace) has not erased its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushError {
    /// The store decides by its server's clock, so others may count on what it holds. Nothing was
    /// sent.
    ServerClock {
        /// The store's namespace.
        namespace: Box<str>,
    },
    /// The namespace is the one of everybody who has chosen none. Nothing was sent.
    DefaultNamespace {
        /// The store's namespace.
        namespace: Box<str>,
    },
    /// Some keys may be left.
    Unfinished {
        /// The store's namespace.
        namespace: Box<str>,
        /// How many keys were erased.
        erased: u64,
        /// Why the others were not.
        failure: Failure,
    },
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlushError::ServerClock { namespace } => write!(
                f,
                "the namespace {namespace:?} is not erased: its store decides by the server's clock, so \
                 others may count on it; give the store a clock and a namespace of its own"
            ),
            FlushError::DefaultNamespace { namespace } => write!(
                f,
                "the namespace {namespace:?} is not erased: it is everybody's who has chosen none; give \
                 the store a namespace of its own"
            ),
            FlushError::Unfinished { namespace, erased, failure } => write!(
                f,
                "the namespace {namespace:?} is not erased whole, {erased} keys of it are: {failure}; \
                 erase it again, or leave the rest to expire"
            ),
        }
    }
}

impl std::error::Error for FlushError {}

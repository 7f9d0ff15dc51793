//! Errors of flushing a namespace.

use std::fmt;

use tollgate_store::Failure;

/// Why [`RedisStore::flush_namespace`](crate::RedisStore::flush_namespace) failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushError {
    /// The store uses the server's clock, so it may hold production data. Nothing was deleted.
    ServerClock {
        /// The store's namespace.
        namespace: Box<str>,
    },
    /// The namespace is the default one, which other stores may use. Nothing was deleted.
    DefaultNamespace {
        /// The store's namespace.
        namespace: Box<str>,
    },
    /// Some keys may remain.
    Unfinished {
        /// The store's namespace.
        namespace: Box<str>,
        /// The number of keys deleted.
        deleted: u64,
        /// Why the other keys were not deleted.
        failure: Failure,
    },
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlushError::ServerClock { namespace } => write!(
                f,
                "namespace {namespace:?} not flushed: the store uses the server's clock, so it may hold \
                 production data; use a store with its own clock and namespace"
            ),
            FlushError::DefaultNamespace { namespace } => write!(
                f,
                "namespace {namespace:?} not flushed: it is the default namespace; use a store with its \
                 own namespace"
            ),
            FlushError::Unfinished { namespace, deleted, failure } => write!(
                f,
                "namespace {namespace:?} not flushed completely, {deleted} keys deleted: {failure}; try \
                 again, or let the other keys expire"
            ),
        }
    }
}

impl std::error::Error for FlushError {}

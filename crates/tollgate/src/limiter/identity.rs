//! The identity of a limiter: whether others share its state, and its name in debug output.

use std::fmt;
use std::sync::Arc;

use super::{Backend, Limiter};

impl Limiter {
    /// Returns whether another limiter is a clone of this one, so that both count in the same state.
    ///
    /// # Examples
    /// ```
    /// use tollgate::{Limiter, MemoryLimiter};
    ///
    /// let limiter = Limiter::from(MemoryLimiter::new());
    /// assert!(limiter.shares_state(&limiter.clone()));
    /// assert!(!limiter.shares_state(&MemoryLimiter::new().into()));
    /// ```
    #[must_use]
    pub fn shares_state(&self, other: &Limiter) -> bool {
        match (&self.0, &other.0) {
            (Backend::Memory(memory), Backend::Memory(other)) => memory.shares_state(other),
            #[cfg(feature = "redis")]
            (Backend::Redis(redis), Backend::Redis(other)) => redis.shares_state(other),
            (Backend::Other(store), Backend::Other(other)) => Arc::ptr_eq(store, other),
            _ => false,
        }
    }
}

/// Writes the kind of store, and no keys: they may be personal data, and there may be a million.
impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Memory(memory) => f.debug_tuple("Limiter").field(memory).finish(),
            #[cfg(feature = "redis")]
            Backend::Redis(_) => f.write_str("Limiter(Redis)"),
            Backend::Other(_) => f.write_str("Limiter(Other)"),
        }
    }
}

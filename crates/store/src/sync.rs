//! What loom replaces in its models: synchronization primitives, and randomness.

#[cfg(loom)]
pub(crate) use foldhash::fast::FixedState as HashState;
#[cfg(not(loom))]
pub(crate) use foldhash::fast::RandomState as HashState;
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, even if it is poisoned: a panic cannot leave the state inconsistent, because each
/// change is a single step.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

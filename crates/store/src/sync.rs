//! What loom replaces in its models: synchronization primitives, and randomness.

use std::sync::TryLockError;

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

/// Locks a mutex as [`lock`] does, unless it is locked.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

//! The order of the callers that wait for the same key in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_algorithms::{Denied, Policy};
use tollgate_state::KeyBuf;

/// The name of a policy, and a key.
type Name = (Box<str>, KeyBuf);

/// The queues of the keys that callers wait for.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<HashMap<Name, Arc<Queue>>>);

/// The callers that wait for one key.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Held by the first caller. The mutex of tokio is fair: it admits callers in their order.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// The last denial that the first caller received.
    last_denial: Mutex<Option<Denied>>,
}

impl Queue {
    pub(super) fn last_denial(&self) -> MutexGuard<'_, Option<Denied>> {
        self.last_denial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A position in a queue, until it is dropped.
pub(super) struct Ticket<'a> {
    waiters: &'a Waiters,
    name: Name,
    pub(super) queue: Arc<Queue>,
}

impl Waiters {
    pub(super) fn enter(&self, policy: &Policy, key: &KeyBuf) -> Ticket<'_> {
        let name: Name = (policy.name().into(), key.clone());
        let queue = Arc::clone(self.lock().entry(name.clone()).or_default());
        Ticket { waiters: self, name, queue }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut queues = self.waiters.lock();
        // This ticket and the table: no other caller can enter while the table is locked.
        if queues.get(&self.name).is_some_and(|queue| Arc::strong_count(queue) <= 2) {
            queues.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_ends_with_its_last_caller() {
        let (waiters, policy) = (Waiters::default(), Policy::named("api", "1/s").unwrap());
        let (a, b) = (KeyBuf::from("a"), KeyBuf::from("b"));
        let first = waiters.enter(&policy, &a);
        let (second, other) = (waiters.enter(&policy, &a), waiters.enter(&policy, &b));
        assert!(Arc::ptr_eq(&first.queue, &second.queue));
        assert!(!Arc::ptr_eq(&first.queue, &other.queue));
        drop(first);
        assert_eq!(waiters.lock().len(), 2);
        drop((second, other));
        assert!(waiters.lock().is_empty());
    }
}

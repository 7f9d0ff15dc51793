//! Who is connected, and who goes when there is no place left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::pulse::Pulse;

/// How many are looked at to find one who can go: a peer that makes connections as fast as it can
/// must not have all of them counted for each.
const LOOKED_AT: usize = 128;
/// How long is waited for a place before it is looked again who can go: meanwhile another may have
/// waited long enough, or a reload may have raised the bound.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
    freed: Notify,
    /// How many were ever taken.
    accepted: AtomicU64,
    /// How many handshakes failed, or were not done in time.
    failed_handshakes: AtomicU64,
    /// How many connections had to go for others.
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Taken {
    pulses: Slab<Arc<Pulse>>,
    /// Where the next search begins.
    next: usize,
}

/// How many connections a listener ever had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub(crate) accepted: u64,
    /// That failed to agree on TLS, or were not done in time.
    pub(crate) failed_handshakes: u64,
    /// That had to go for others.
    pub(crate) evicted: u64,
}

/// One connection's place, until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    index: usize,
}

impl Places {
    // What is held under the lock is whole after each step.
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(self: &Arc<Self>, pulse: Arc<Pulse>) -> Place {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Place { places: Arc::clone(self), index: self.lock().pulses.insert(pulse) }
    }

    /// Waits until fewer than `most` are taken, and meanwhile has those leave who can.
    pub(crate) async fn wait(&self, most: impl Fn() -> usize) {
        while self.count() >= most() {
            let has_asked_one = self.make_room();
            tracing::debug!(has_asked_one, "every place for a connection is taken");
            // However it ends, it is looked again.
            let _ = timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    /// Asks one to leave who is waiting for nothing, if there is one: rather one that has never
    /// asked anything, and of these the one that has been silent the longest.
    fn make_room(&self) -> bool {
        let mut taken = self.lock();
        let capacity = taken.pulses.capacity().max(1);
        let first = taken.next;
        taken.next = first.wrapping_add(LOOKED_AT) % capacity;
        let looked_at = (0..capacity.min(LOOKED_AT)).map(|n| first.wrapping_add(n) % capacity);
        let found = looked_at.filter_map(|looked_at| taken.pulses.get(looked_at));
        let Some(pulse) =
            found.filter(|found| found.can_leave()).max_by_key(|found| found.expendable())
        else {
            return false;
        };
        self.evicted.fetch_add(1, Ordering::Relaxed);
        pulse.evict();
        true
    }

    /// Has every connection look at what holds now.
    pub(super) fn nudge(&self) {
        for (_, pulse) in &self.lock().pulses {
            pulse.nudge();
        }
    }

    pub(super) fn count_failed_handshake(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    /// How many connections there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().pulses.len()
    }

    /// How many there ever were, and what became of them.
    pub(crate) fn totals(&self) -> Totals {
        let of = |atomic_u64: &AtomicU64| atomic_u64.load(Ordering::Relaxed);
        Totals {
            accepted: of(&self.accepted),
            failed_handshakes: of(&self.failed_handshakes),
            evicted: of(&self.evicted),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().pulses.try_remove(self.index);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tollgate_store::Clock;

    use super::*;

    #[tokio::test]
    async fn a_place_is_waited_for_until_one_is_free_or_there_are_more() {
        let places = Arc::new(Places::default());
        let most = AtomicUsize::new(2);
        let wait = || places.wait(|| most.load(Ordering::Relaxed));
        let take = || places.take(Arc::new(Pulse::new(Clock::system())));
        wait().await;
        let first = take();
        wait().await;
        let second = take();
        assert!(timeout(LOOK_AGAIN * 2, wait()).await.is_err(), "both are taken");
        drop(first);
        wait().await;
        let third = take();
        most.store(3, Ordering::Relaxed);
        wait().await;
        drop((second, third));
        assert_eq!((places.count(), places.totals().accepted), (0, 3));
    }
}

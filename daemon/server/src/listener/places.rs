//! The connection limit of a listener, and which connection is evicted when it is reached.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::pulse::Pulse;

/// How many connections are examined to find one to evict. It bounds the work that a peer causes
/// by connecting as fast as it can.
const LOOKED_AT: usize = 128;
/// How long to wait for a place before searching again: meanwhile another connection may have been
/// idle long enough, or a reload may have raised the limit.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
    freed: Notify,
    /// Connections accepted since the start.
    accepted: AtomicU64,
    /// TLS handshakes that failed or timed out.
    failed_handshakes: AtomicU64,
    /// Connections evicted in favour of others.
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Taken {
    pulses: Slab<Arc<Pulse>>,
    /// Where the next search begins.
    next: usize,
}

/// Totals of a listener since the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub(crate) accepted: u64,
    /// Connections whose TLS handshake failed or timed out.
    pub(crate) failed_handshakes: u64,
    /// Connections evicted in favour of others.
    pub(crate) evicted: u64,
}

/// The place of one connection; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    index: usize,
}

impl Places {
    // A panic under the lock cannot leave the slab half changed, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(self: &Arc<Self>, pulse: Arc<Pulse>) -> Place {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Place { places: Arc::clone(self), index: self.lock().pulses.insert(pulse) }
    }

    /// Waits until fewer than `most` places are taken, evicting idle connections meanwhile.
    pub(crate) async fn wait(&self, most: impl Fn() -> usize) {
        while self.count() >= most() {
            let has_asked_one = self.make_room();
            tracing::debug!(has_asked_one, "connection limit reached");
            // Either way the loop checks again.
            let _ = timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    /// Evicts one idle connection, if there is one: first those that have never sent a request, and
    /// among these the one that has been idle the longest.
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

    /// Wakes every connection to check its limits and whether the daemon stops.
    pub(super) fn nudge(&self) {
        for (_, pulse) in &self.lock().pulses {
            pulse.nudge();
        }
    }

    pub(super) fn count_failed_handshake(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().pulses.len()
    }

    /// The totals since the start.
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
        assert!(timeout(LOOK_AGAIN * 2, wait()).await.is_err(), "both places are taken");
        drop(first);
        wait().await;
        let third = take();
        most.store(3, Ordering::Relaxed);
        wait().await;
        drop((second, third));
        assert_eq!((places.count(), places.totals().accepted), (0, 3));
    }
}

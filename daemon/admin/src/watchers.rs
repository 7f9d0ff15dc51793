//! Clients of the event stream.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame};
use tokio::sync::watch;
use tollgate::{Micros, Timestamp};
use tollgate_transport::WatchGuard;

/// The most streams at a time.
pub(crate) const MAX_WATCHERS: usize = 32;
/// A client that has read no event for this long is dropped.
const MAX_SILENCE: Micros = Micros::from_secs(10);
/// The value of [`Watcher::read_at`] of a dropped client.
const DROPPED: u64 = u64::MAX;

/// The open streams, and the newest event, which all of them share.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// `None` once the daemon stops.
    latest: watch::Sender<Option<Bytes>>,
    open: Mutex<Vec<Arc<Watcher>>>,
}

#[derive(Debug)]
struct Watcher {
    /// When the client read its last event, in µs, or [`DROPPED`].
    read_at: AtomicU64,
}

/// The body of a stream. A client that is slow misses events, which are not queued.
pub(crate) struct Events {
    watchers: Arc<Watchers>,
    watcher: Arc<Watcher>,
    first: Option<Bytes>,
    next: NextEvent,
    /// Its connection may be silent.
    _watch: WatchGuard,
}

type NextEvent =
    Pin<Box<dyn Future<Output = Option<(Bytes, watch::Receiver<Option<Bytes>>)>> + Send>>;

impl Default for Watchers {
    fn default() -> Self {
        Watchers { latest: watch::Sender::new(Some(Bytes::new())), open: Mutex::default() }
    }
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watcher>>> {
        // The list is valid after every single update.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a stream that begins with this event, unless there are too many.
    pub(crate) fn open(
        self: &Arc<Self>,
        first: Bytes,
        now: Timestamp,
        watch: WatchGuard,
    ) -> Option<Events> {
        let watcher = Arc::new(Watcher { read_at: AtomicU64::new(now.as_micros()) });
        let mut open = self.lock();
        if open.len() >= MAX_WATCHERS {
            return None;
        }
        open.push(Arc::clone(&watcher));
        drop(open);
        let next = Box::pin(next(self.latest.subscribe()));
        Some(Events {
            watchers: Arc::clone(self),
            watcher,
            first: Some(first),
            next,
            _watch: watch,
        })
    }

    /// Sends an event to all streams; `event` is called if there are any. Drops clients that do not
    /// read.
    pub(crate) fn send(&self, now: Timestamp, event: impl FnOnce() -> Bytes) {
        self.lock().retain(|watcher| {
            let read_at = Timestamp::from_micros(watcher.read_at.load(Ordering::Relaxed));
            let is_reading = now.duration_since(read_at) < MAX_SILENCE;
            if !is_reading {
                watcher.read_at.store(DROPPED, Ordering::Relaxed);
            }
            is_reading
        });
        if self.latest.receiver_count() > 0 {
            self.latest.send_if_modified(|latest| {
                if let Some(latest) = latest {
                    *latest = event();
                }
                latest.is_some()
            });
        }
    }

    /// Ends the open streams.
    pub(crate) fn end(&self) {
        for watcher in self.lock().drain(..) {
            watcher.read_at.store(DROPPED, Ordering::Relaxed);
        }
        // Wakes their bodies.
        self.latest.send_modify(|_| ());
    }

    /// Ends all streams, also those that are opened later.
    pub(crate) fn close(&self) {
        self.latest.send_replace(None);
    }

    fn remove(&self, watcher: &Arc<Watcher>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, watcher));
    }
}

/// Waits for the next event; `None` once the daemon stops.
async fn next(
    mut events: watch::Receiver<Option<Bytes>>,
) -> Option<(Bytes, watch::Receiver<Option<Bytes>>)> {
    if events.borrow().is_some() {
        events.changed().await.ok()?;
    }
    let event = events.borrow_and_update().clone()?;
    Some((event, events))
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("watcher", &self.watcher).finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn poll_event(
        &mut self,
        now: Timestamp,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Frame<Bytes>>> {
        if self.watcher.read_at.load(Ordering::Relaxed) == DROPPED {
            return Poll::Ready(None);
        }
        let event = match self.first.take() {
            Some(first) => Some(first),
            None => match self.next.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => None,
                Poll::Ready(Some((event, events))) => {
                    self.next = Box::pin(next(events));
                    Some(event)
                }
            },
        };
        self.watcher.read_at.store(now.as_micros(), Ordering::Relaxed);
        Poll::Ready(event.map(Frame::data))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.watchers.remove(&self.watcher);
    }
}

//! Timeouts of slow and idle connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tollgate::Timestamp;
use tollgate_store::Clock;

use crate::listener::Stream;
use tollgate_config::Bounds;

/// Tracks what a connection waits for, and since when. The task of the connection updates it, and
/// under HTTP/2 those of its requests.
#[derive(Debug)]
pub struct IdleTracker {
    clock: Clock,
    /// Requests in flight.
    requests: AtomicU32,
    /// Whether there was a request.
    had_request: AtomicBool,
    /// Whether a part of the next request has arrived.
    in_head: AtomicBool,
    /// Whether it uses HTTP/2, where bytes need not belong to a request.
    is_http2: AtomicBool,
    /// The beginning of the wait, in µs.
    since: AtomicU64,
    /// Whether it is to be closed in favour of another connection, if it is still idle.
    is_evicted: AtomicBool,
    /// Wakes the connection's task.
    notify: Notify,
}

/// The idle time after which a connection may be evicted.
const MIN_IDLE_TO_EVICT: Duration = Duration::from_secs(1);

/// The result of a check of the timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleStatus {
    /// Check again after at most this time.
    Wait(Duration),
    /// A timeout has expired.
    Overdue,
    /// It is closed in favour of another connection.
    Evicted,
}

impl IdleTracker {
    /// The tracker of a new connection, whose first request is awaited.
    pub fn new(clock: Clock) -> Self {
        let since = AtomicU64::new(clock.now().as_micros());
        IdleTracker {
            clock,
            requests: AtomicU32::new(0),
            had_request: AtomicBool::new(false),
            in_head: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            since,
            is_evicted: AtomicBool::new(false),
            notify: Notify::new(),
        }
    }

    /// Wakes the connection's task.
    pub fn notify(&self) {
        self.notify.notify_one();
    }

    /// Waits until [`notify`](Self::notify) is called.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Asks the connection to close. It stays open if it has become busy.
    pub(super) fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        self.notify();
    }

    /// Waits for the eviction, before the first request.
    pub async fn evicted(&self) {
        while !self.is_evicted.load(Ordering::Relaxed) {
            self.notified().await;
        }
    }

    /// Whether it can be evicted: idle for a while.
    pub(super) fn is_evictable(&self) -> bool {
        !self.is_busy()
            && self.waited() >= MIN_IDLE_TO_EVICT
            && !self.is_evicted.load(Ordering::Relaxed)
    }

    /// Connections with the greatest priority are evicted first: those without any request, then
    /// those idle the longest.
    pub(super) fn eviction_priority(&self) -> (bool, Duration) {
        (!self.had_request(), self.waited())
    }

    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Restarts the timeout of the current wait.
    pub fn restart(&self) {
        self.since.store(self.clock.now().as_micros(), Ordering::Relaxed);
    }

    /// A request has begun to arrive.
    pub fn begin_head(&self) {
        if self.in_head.load(Ordering::Relaxed) {
            return;
        }
        if self.had_request() {
            self.restart();
        }
        self.in_head.store(true, Ordering::Relaxed);
    }

    /// Bytes have arrived.
    fn record_bytes(&self, bytes: &[u8]) {
        if self.is_busy() || self.is_http2() || self.in_head.load(Ordering::Relaxed) {
            return;
        }
        if self.had_request() {
            self.restart();
        } else if bytes.starts_with(b"PRI * HTTP/2") {
            // The preface of HTTP/2, not a request of HTTP/1.
            return self.is_http2.store(true, Ordering::Relaxed);
        }
        self.in_head.store(true, Ordering::Relaxed);
    }

    fn had_request(&self) -> bool {
        self.had_request.load(Ordering::Relaxed)
    }

    /// Whether the connection speaks HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Relaxed)
    }

    /// A request is in flight until the guard is dropped.
    pub fn begin_request(self: &Arc<Self>) -> BusyGuard {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.had_request.store(true, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
        BusyGuard(Arc::clone(self))
    }

    /// The idle time; absent while a request arrives or is in flight.
    pub fn idle(&self) -> Option<Duration> {
        let in_head = self.in_head.load(Ordering::Relaxed);
        (!in_head && !self.is_busy()).then(|| self.waited())
    }

    fn waited(&self) -> Duration {
        let since = Timestamp::from_micros(self.since.load(Ordering::Relaxed));
        self.clock.now().duration_since(since).into()
    }

    /// Checks the timeouts.
    pub fn status(&self, bounds: &Bounds) -> IdleStatus {
        // Checked at this interval, the timeout is exceeded by at most a quarter.
        let interval = bounds.header_timeout / 4;
        if self.is_busy() {
            self.is_evicted.store(false, Ordering::Relaxed);
            return IdleStatus::Wait(interval);
        }
        if self.is_evicted.swap(false, Ordering::Relaxed) && self.waited() >= MIN_IDLE_TO_EVICT {
            return IdleStatus::Evicted;
        }
        let in_head = self.in_head.load(Ordering::Relaxed);
        let is_known = self.had_request() || self.is_http2();
        let is_idle = is_known && !in_head;
        let timeout = if is_idle { bounds.idle } else { bounds.header_timeout };
        match timeout.checked_sub(self.waited()).filter(|left| !left.is_zero()) {
            Some(left) => IdleStatus::Wait(left.min(interval)),
            None => IdleStatus::Overdue,
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub struct BusyGuard(Arc<IdleTracker>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.restart();
        }
    }
}

pin_project! {
    /// A stream that records the arrival of bytes.
    #[derive(Debug)]
    pub struct TrackedStream {
        #[pin]
        stream: Stream,
        tracker: Arc<IdleTracker>,
    }
}

impl TrackedStream {
    /// A stream whose reads and writes count as activity of its connection.
    pub fn new(stream: Stream, tracker: Arc<IdleTracker>) -> Self {
        TrackedStream { stream, tracker }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buffer.filled().len();
        let polled = this.stream.poll_read(cx, buffer);
        if let Some(bytes) = buffer.filled().get(before..).filter(|filled| !filled.is_empty()) {
            this.tracker.record_bytes(bytes);
        }
        polled
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }
}

//! Tracks what a connection waits for, and since when, to enforce the timeouts.

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

use crate::config::Bounds;
use crate::listener::Stream;

/// What a connection waits for. The task of the connection updates it; under HTTP/2 the tasks of its
/// requests do too.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Clock,
    /// Requests in flight.
    requests: AtomicU32,
    /// Whether it has ever sent a request.
    has_asked: AtomicBool,
    /// Whether the head of the next request has begun to arrive.
    in_head: AtomicBool,
    /// Whether it speaks HTTP/2, where bytes that arrive need not belong to a request.
    is_http2: AtomicBool,
    /// When the current wait started, in µs.
    since: AtomicU64,
    /// Whether to close it in favour of another connection, if it is still idle.
    is_evicted: AtomicBool,
    /// Wakes the task of the connection to check all of this.
    nudge: Notify,
}

/// How long a connection must have been idle before it may be evicted.
const LEAVES_AFTER: Duration = Duration::from_secs(1);

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Check again after this time at the latest.
    Wait(Duration),
    /// It has waited too long.
    Overdue,
    /// Another connection needs its place.
    Evicted,
}

impl Pulse {
    /// Starts tracking a connection that was just accepted; its first request is due.
    pub(crate) fn new(clock: Clock) -> Self {
        let since = AtomicU64::new(clock.now().as_micros());
        Pulse {
            clock,
            requests: AtomicU32::new(0),
            has_asked: AtomicBool::new(false),
            in_head: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            since,
            is_evicted: AtomicBool::new(false),
            nudge: Notify::new(),
        }
    }

    /// Wakes the task of the connection.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    /// Requests the eviction of the connection. It stays open if it has become busy meanwhile.
    pub(crate) fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        self.nudge();
    }

    /// Waits for an eviction before the first request.
    pub(crate) async fn evicted(&self) {
        while !self.is_evicted.load(Ordering::Relaxed) {
            self.nudged().await;
        }
    }

    /// Whether it may be evicted: no request is in flight and it has been idle long enough.
    pub(crate) fn can_leave(&self) -> bool {
        !self.is_busy() && self.waited() >= LEAVES_AFTER && !self.is_evicted.load(Ordering::Relaxed)
    }

    /// The eviction priority: first connections without any request, then the longest idle.
    pub(crate) fn expendable(&self) -> (bool, Duration) {
        (!self.has_asked(), self.waited())
    }

    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn restart(&self) {
        self.since.store(self.clock.now().as_micros(), Ordering::Relaxed);
    }

    /// Records that a request has begun to arrive, unless that is already recorded.
    pub(crate) fn begins(&self) {
        if self.in_head.load(Ordering::Relaxed) {
            return;
        }
        if self.has_asked() {
            self.restart();
        }
        self.in_head.store(true, Ordering::Relaxed);
    }

    /// Records that bytes have arrived.
    fn arrived(&self, bytes: &[u8]) {
        if self.is_busy() || self.is_http2() || self.in_head.load(Ordering::Relaxed) {
            return;
        }
        if self.has_asked() {
            self.restart();
        } else if bytes.starts_with(b"PRI * HTTP/2") {
            // The HTTP/2 preface, which is not a request.
            return self.is_http2.store(true, Ordering::Relaxed);
        }
        self.in_head.store(true, Ordering::Relaxed);
    }

    fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Relaxed)
    }

    /// Records a request in flight until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.has_asked.store(true, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// The idle time; `None` while a request arrives or is in flight.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let in_head = self.in_head.load(Ordering::Relaxed);
        (!in_head && !self.is_busy()).then(|| self.waited())
    }

    fn waited(&self) -> Duration {
        let since = Timestamp::from_micros(self.since.load(Ordering::Relaxed));
        self.clock.now().duration_since(since).into()
    }

    /// Checks the connection against the timeouts.
    pub(crate) fn verdict(&self, bounds: &Bounds) -> Verdict {
        // With this interval a timeout fires at most a quarter late.
        let often = bounds.header_timeout / 4;
        if self.is_busy() {
            self.is_evicted.store(false, Ordering::Relaxed);
            return Verdict::Wait(often);
        }
        if self.is_evicted.swap(false, Ordering::Relaxed) && self.waited() >= LEAVES_AFTER {
            return Verdict::Evicted;
        }
        let in_head = self.in_head.load(Ordering::Relaxed);
        let is_known = self.has_asked() || self.is_http2();
        let is_idle = is_known && !in_head;
        let most = if is_idle { bounds.idle } else { bounds.header_timeout };
        match most.checked_sub(self.waited()).filter(|left| !left.is_zero()) {
            Some(left) => Verdict::Wait(left.min(often)),
            None => Verdict::Overdue,
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Pulse>);

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.restart();
        }
    }
}

pin_project! {
    /// A stream that records when bytes arrive.
    #[derive(Debug)]
    pub(crate) struct Watched {
        #[pin]
        stream: Stream,
        pulse: Arc<Pulse>,
    }
}

impl Watched {
    pub(crate) fn new(stream: Stream, pulse: Arc<Pulse>) -> Self {
        Watched { stream, pulse }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buffer.filled().len();
        let polled = this.stream.poll_read(cx, buffer);
        if let Some(bytes) = buffer.filled().get(before..).filter(|filled| !filled.is_empty()) {
            this.pulse.arrived(bytes);
        }
        polled
    }
}

impl AsyncWrite for Watched {
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

//! What a connection is waiting for, and since when: what slow and idle peers are held to.

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

/// What a connection is waiting for. Its own task changes it, and under HTTP/2 those of its
/// requests.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Clock,
    /// Requests that are not answered yet.
    requests: AtomicU32,
    /// Whether it has ever asked anything.
    has_asked: AtomicBool,
    /// Whether the head of the next request has begun to arrive.
    in_head: AtomicBool,
    /// Whether it speaks HTTP/2, where what arrives need not be a request.
    is_http2: AtomicBool,
    /// Since when it waits, in µs.
    since: AtomicU64,
    /// Whether it is to make room for another, if it still waits for nothing.
    is_evicted: AtomicBool,
    /// Has the connection's task look at all of this.
    nudge: Notify,
}

/// How long a connection must have waited for nothing to make room for another.
const LEAVES_AFTER: Duration = Duration::from_secs(1);

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again at the latest after this.
    Wait(Duration),
    /// It has waited too long.
    Overdue,
    /// Another needs its place.
    Evicted,
}

impl Pulse {
    /// Of a connection that was just accepted, whose first request is due.
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

    /// Has the connection's task look.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    /// Asks it to make room. It stays if it has become busy meanwhile.
    pub(crate) fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        self.nudge();
    }

    /// Waits until it has to make room, before its first request.
    pub(crate) async fn evicted(&self) {
        while !self.is_evicted.load(Ordering::Relaxed) {
            self.nudged().await;
        }
    }

    /// Whether it could make room: nothing is being answered, and nothing came for a while.
    pub(crate) fn can_leave(&self) -> bool {
        !self.is_busy() && self.waited() >= LEAVES_AFTER && !self.is_evicted.load(Ordering::Relaxed)
    }

    /// The more of it, the sooner it goes: who has never asked goes first, then who is silent the
    /// longest.
    pub(crate) fn expendable(&self) -> (bool, Duration) {
        (!self.has_asked(), self.waited())
    }

    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn restart(&self) {
        self.since.store(self.clock.now().as_micros(), Ordering::Relaxed);
    }

    /// Notes that a request has begun to arrive, unless that is known.
    pub(crate) fn begins(&self) {
        if self.in_head.load(Ordering::Relaxed) {
            return;
        }
        if self.has_asked() {
            self.restart();
        }
        self.in_head.store(true, Ordering::Relaxed);
    }

    /// Notes that bytes have arrived.
    fn arrived(&self, bytes: &[u8]) {
        if self.is_busy() || self.is_http2() || self.in_head.load(Ordering::Relaxed) {
            return;
        }
        if self.has_asked() {
            self.restart();
        } else if bytes.starts_with(b"PRI * HTTP/2") {
            // So HTTP/2 begins, and no request of HTTP/1.
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

    /// Notes that a request is to be answered, until the guard falls.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.has_asked.store(true, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// How long nothing has been asked; nothing while something is being answered or asked.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let in_head = self.in_head.load(Ordering::Relaxed);
        (!in_head && !self.is_busy()).then(|| self.waited())
    }

    fn waited(&self) -> Duration {
        let since = Timestamp::from_micros(self.since.load(Ordering::Relaxed));
        self.clock.now().since(since).into()
    }

    /// Holds the connection to the bounds.
    pub(crate) fn verdict(&self, bounds: &Bounds) -> Verdict {
        // Looked at this often, a head is late by at most a quarter.
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

/// A request that is being answered.
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
    /// A stream that notes what arrives.
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

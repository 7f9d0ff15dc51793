//! Timeouts of slow and idle connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tollgate::Timestamp;
use tollgate_engine::Authentication;
use tollgate_state::Clock;

use crate::linger::Linger;
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
    /// Since when the client has read nothing of what waits for it, in µs, or [`NOT_BLOCKED`].
    blocked_since: AtomicU64,
    /// Streams that may be silent for long: they are no reason to close the connection, nor to keep
    /// it when others need its place.
    watches: AtomicU32,
    /// Bytes of responses that the client has not read.
    unsent: AtomicUsize,
    /// When a part of them was read last, in µs.
    sent_at: AtomicU64,
    opened: Timestamp,
    authentication: Arc<Authentication>,
    /// Whether it is to be closed in favour of another connection: 0, or an [`Eviction`].
    eviction: AtomicU8,
    /// Wakes requests that wait until responses are read.
    sent: Notify,
    /// Wakes the connection's task.
    notify: Notify,
}

/// No write waits for the client.
const NOT_BLOCKED: u64 = u64::MAX;

/// The idle time after which a connection may be evicted.
const MIN_IDLE_TO_EVICT: Duration = Duration::from_secs(1);

/// How long a client may take to authenticate before its connection may be evicted.
const MIN_TIME_TO_AUTHENTICATE: Duration = Duration::from_millis(40);

/// Why a connection is closed in favour of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// It is idle.
    Idle,
    /// Its client has not authenticated.
    Unauthenticated,
    /// The buffers of all connections are full, and it needs more.
    NoBuffers,
}

impl Eviction {
    const ALL: [Eviction; 3] = [Eviction::Idle, Eviction::Unauthenticated, Eviction::NoBuffers];

    /// A number above 0.
    const fn code(self) -> u8 {
        match self {
            Eviction::Idle => 1,
            Eviction::Unauthenticated => 2,
            Eviction::NoBuffers => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Eviction::ALL.into_iter().find(|eviction| eviction.code() == code)
    }
}

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
    pub fn new(clock: Clock, authentication: Arc<Authentication>) -> Self {
        let opened = clock.now();
        let since = AtomicU64::new(opened.as_micros());
        IdleTracker {
            clock,
            requests: AtomicU32::new(0),
            had_request: AtomicBool::new(false),
            in_head: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            since,
            blocked_since: AtomicU64::new(NOT_BLOCKED),
            watches: AtomicU32::new(0),
            unsent: AtomicUsize::new(0),
            sent_at: AtomicU64::new(0),
            opened,
            authentication,
            eviction: AtomicU8::new(0),
            sent: Notify::new(),
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

    /// Whether the client has authenticated.
    pub fn authentication(&self) -> &Arc<Authentication> {
        &self.authentication
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.authentication.is_done()
    }

    /// Asks the connection to close. It stays open if the reason has ceased.
    pub(super) fn evict(&self, eviction: Eviction) {
        self.eviction.store(eviction.code(), Ordering::Relaxed);
        self.notify();
    }

    /// Waits for the eviction, before the first request.
    pub async fn evicted(&self) {
        while self.eviction.load(Ordering::Relaxed) == 0 {
            self.notified().await;
        }
    }

    /// Whether it can be evicted for this reason, and is not being evicted.
    pub(super) fn is_evictable(&self, eviction: Eviction) -> bool {
        self.has_reason(eviction) && self.eviction.load(Ordering::Relaxed) == 0
    }

    fn has_reason(&self, eviction: Eviction) -> bool {
        match eviction {
            Eviction::Idle => !self.is_busy() && self.waited() >= MIN_IDLE_TO_EVICT,
            Eviction::Unauthenticated => {
                !self.is_authenticated() && self.age() >= MIN_TIME_TO_AUTHENTICATE
            }
            Eviction::NoBuffers => true,
        }
    }

    /// Connections with the greatest priority are evicted first: the oldest without authentication,
    /// then those without any request, then those idle the longest.
    pub(super) fn eviction_priority(&self, eviction: Eviction) -> (u8, Duration) {
        match eviction {
            Eviction::Unauthenticated => (2, self.age()),
            Eviction::Idle | Eviction::NoBuffers => (u8::from(!self.had_request()), self.waited()),
        }
    }

    /// Whether it is evicted, and the reason has not ceased; asked once.
    fn take_eviction(&self) -> bool {
        let eviction = Eviction::from_code(self.eviction.swap(0, Ordering::Relaxed));
        eviction.is_some_and(|eviction| self.has_reason(eviction))
    }

    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Restarts the timeout of the current wait.
    pub fn restart(&self) {
        self.since.store(self.clock.now().as_micros(), Ordering::Relaxed);
    }

    /// Closes the connection because there is no space for its response.
    pub(super) fn close_without_buffers(&self) {
        self.evict(Eviction::NoBuffers);
    }

    /// A response of this length waits until the client reads it.
    pub(super) fn add_unsent(&self, len: usize) {
        if self.unsent.fetch_add(len, Ordering::Relaxed) == 0 {
            self.record_sent();
        }
    }

    /// The client has read a part of a response.
    pub(super) fn record_sent(&self) {
        self.sent_at.store(self.clock.now().as_micros(), Ordering::Relaxed);
    }

    pub(super) fn remove_unsent(&self, len: usize) {
        self.unsent.fetch_sub(len, Ordering::Relaxed);
        self.sent.notify_waiters();
    }

    /// Waits until fewer than `limit` bytes of responses wait for the client.
    pub async fn wait_until_sent(&self, limit: impl FnOnce() -> usize) {
        if self.unsent.load(Ordering::Relaxed) == 0 {
            return;
        }
        let limit = limit();
        loop {
            let sent = self.sent.notified();
            if self.unsent.load(Ordering::Relaxed) < limit {
                return;
            }
            sent.await;
        }
    }

    /// Records whether a write waits until the client reads.
    #[inline]
    pub fn record_write(&self, is_blocked: bool) {
        let was_blocked = self.blocked_since.load(Ordering::Relaxed) != NOT_BLOCKED;
        match (was_blocked, is_blocked) {
            (false, true) => {
                self.blocked_since.store(self.clock.now().as_micros(), Ordering::Relaxed);
            }
            (true, false) => {
                self.blocked_since.store(NOT_BLOCKED, Ordering::Relaxed);
                // It was the daemon that waited, not the client.
                self.restart();
            }
            (false, false) | (true, true) => {}
        }
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
        self.elapsed(self.since.load(Ordering::Relaxed))
    }

    fn age(&self) -> Duration {
        self.clock.now().duration_since(self.opened).into()
    }

    fn elapsed(&self, since: u64) -> Duration {
        self.clock.now().duration_since(Timestamp::from_micros(since)).into()
    }

    /// Checks the timeouts.
    pub fn status(&self, bounds: &Bounds) -> IdleStatus {
        // Checked at this interval, the timeout is exceeded by at most a quarter.
        let interval = bounds.header_timeout.min(bounds.write_timeout) / 4;
        let blocked_since = self.blocked_since.load(Ordering::Relaxed);
        let is_blocked = blocked_since != NOT_BLOCKED;
        let has_unsent = self.unsent.load(Ordering::Relaxed) > 0;
        if (is_blocked && self.elapsed(blocked_since) >= bounds.write_timeout)
            || (has_unsent
                && self.elapsed(self.sent_at.load(Ordering::Relaxed)) >= bounds.write_timeout)
        {
            return IdleStatus::Overdue;
        }
        if self.take_eviction() {
            return IdleStatus::Evicted;
        }
        let is_watched = self.watches.load(Ordering::Relaxed) > 0;
        if self.is_busy() || is_watched || is_blocked || has_unsent {
            return IdleStatus::Wait(interval);
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

impl BusyGuard {
    /// The request is no longer in flight; its response is a stream that may be silent for long.
    #[must_use]
    pub fn watch(self) -> WatchGuard {
        self.0.watches.fetch_add(1, Ordering::Relaxed);
        WatchGuard(Arc::clone(&self.0))
    }
}

/// A stream that may be silent for long.
#[derive(Debug)]
pub struct WatchGuard(Arc<IdleTracker>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        if self.0.watches.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.restart();
        }
    }
}

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
        // From the shutdown on, if the head of a request was rejected.
        linger: Option<Linger>,
    }
}

impl TrackedStream {
    /// A stream whose reads and writes count as activity of its connection.
    pub fn new(stream: Stream, tracker: Arc<IdleTracker>) -> Self {
        TrackedStream { stream, tracker, linger: None }
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
        let this = self.project();
        let polled = this.stream.poll_write(cx, bytes);
        this.tracker.record_write(polled.is_pending());
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let polled = this.stream.poll_write_vectored(cx, buffers);
        this.tracker.record_write(polled.is_pending());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let polled = this.stream.poll_flush(cx);
        this.tracker.record_write(polled.is_pending());
        polled
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        if this.linger.is_none() {
            ready!(this.stream.as_mut().poll_shutdown(cx))?;
            // Without a rejected head the peer has sent nothing that was not read.
            if !this.tracker.in_head.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let linger = this.linger.get_or_insert_with(Linger::new);
        linger.poll_discard(this.stream, cx).map(Ok)
    }
}

//! A connection: reads a batch of commands, executes it, sends all replies at once, and repeats.

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem};

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep, timeout};

use tollgate_engine::{Closure, Engine, ListenerKind, Remote, WRONG_TOKEN_DELAY};

use super::RespState;
use super::context::BatchContext;
use super::conversation::Conversation;
use super::reply_buffer::ReplyBuffer;
use tollgate_transport::{BufferLease, IdleStatus, IdleTracker, Lifecycle, Stream};

/// The initial size of the input buffer, and its size while idle.
const MIN_BUFFER: usize = 4 * 1024;
/// The most bytes of one read.
const MAX_BUFFER: usize = 64 * 1024;
/// The idle time after which a connection is closed while the daemon stops, as over HTTP.
const IDLE_TO_CLOSE: Duration = Duration::from_secs(1);
/// How long to wait for the client to close. Closing with unread bytes would discard replies that
/// the client has not read yet.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves a connection until the client closes it, a timeout expires, it is evicted, or the daemon
/// stops.
pub async fn serve(
    engine: &Engine,
    state: &RespState,
    lifecycle: &Lifecycle,
    stream: Stream,
    remote: Remote,
    tracker: Arc<IdleTracker>,
) {
    let mut connection = Connection {
        engine,
        state,
        lifecycle,
        stream,
        remote,
        tracker,
        conversation: Conversation::new(state.next_id()),
        input: Vec::with_capacity(MIN_BUFFER),
        is_buffer_full: false,
        out: ReplyBuffer::default(),
        lease: BufferLease::new(Arc::clone(&state.buffers)),
        is_within_budget: true,
        timer: Box::pin(sleep(Duration::ZERO)),
    };
    let end = connection.run().await;
    connection.close(end).await;
}

struct Connection<'d> {
    engine: &'d Engine,
    state: &'d RespState,
    lifecycle: &'d Lifecycle,
    stream: Stream,
    remote: Remote,
    tracker: Arc<IdleTracker>,
    conversation: Conversation,
    /// Bytes that were read and not executed; begins with a command.
    input: Vec<u8>,
    /// Whether the last read filled the buffer.
    is_buffer_full: bool,
    out: ReplyBuffer,
    /// The part of the daemon's buffers that the connection uses.
    lease: BufferLease,
    /// Whether all of its buffers are part of the lease.
    is_within_budget: bool,
    /// Fires when the timeouts are checked next. It is kept across waits: setting it for each would
    /// cost as much as a decision.
    timer: Pin<Box<Sleep>>,
}

/// How a connection ends.
#[derive(Debug)]
enum End {
    /// The client closed it, or it was evicted.
    Closed,
    /// The daemon closes it after the last reply.
    Finished,
    /// A timeout expired.
    Overdue,
    /// The buffers of all connections are full.
    NoBuffers,
    Failed(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Failed(error)
    }
}

impl Connection<'_> {
    async fn run(&mut self) -> End {
        loop {
            if let Err(end) = self.read().await {
                return end;
            }
            loop {
                let has_more = self.execute_batch().await;
                if mem::take(&mut self.conversation.session.has_wrong_token)
                    && let Err(end) = self.delay_reply().await
                {
                    return end;
                }
                self.is_within_budget = self.lease_buffers(0);
                if !self.is_within_budget && !self.can_release_buffers() {
                    return End::NoBuffers;
                }
                if let Err(end) = self.write().await {
                    return end;
                }
                if self.conversation.session.is_closing {
                    return End::Finished;
                }
                if !has_more {
                    break;
                }
                // A client that sends without pause must not starve others.
                yield_now().await;
            }
            if self.lifecycle.is_closing() && self.input.is_empty() {
                return End::Finished;
            }
        }
    }

    /// Executes a batch of commands. Returns whether a complete command may be left.
    async fn execute_batch(&mut self) -> bool {
        let active = self.engine.active();
        let session = &self.conversation.session;
        let mut batch = BatchContext::new(self.engine, self.state, &active, &self.remote, session);
        // While the buffers are full, replies are sent one by one.
        let max_output = if self.is_within_budget { active.bounds.output } else { 1 };
        let progress =
            self.conversation.execute(&self.input, max_output, &mut batch, &mut self.out);
        let has_work = progress.consumed > 0 || self.out.len() > 0 || !batch.calls.is_empty();
        let busy = has_work.then(|| self.tracker.begin_request());
        batch.execute_pending(&mut self.out).await;
        drop((batch, busy));
        if progress.consumed == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..progress.consumed);
        }
        if !self.input.is_empty() {
            self.tracker.begin_head();
        }
        progress.has_more
    }

    /// Waits before the reply to a wrong token. Meanwhile the connection can be closed, so that it
    /// keeps no place from others.
    async fn delay_reply(&mut self) -> Result<(), End> {
        let mut delay = Box::pin(sleep(WRONG_TOKEN_DELAY));
        loop {
            tokio::select! {
                () = &mut delay => return Ok(()),
                () = self.tracker.notified() => {
                    self.check_timeouts(self.lifecycle.is_closing())?;
                }
            }
        }
    }

    /// Adjusts the lease to the buffers of the connection and `more` bytes. The first bytes of each
    /// buffer are not part of it, so that clients with short requests are served at any time.
    fn lease_buffers(&mut self, more: usize) -> bool {
        let input = (self.input.capacity() + more).saturating_sub(MIN_BUFFER);
        let output = self.out.capacity().saturating_sub(MIN_BUFFER);
        let bytes = input + output + self.conversation.session.queued_bytes();
        self.lease.resize(bytes, self.engine.active().bounds.buffers)
    }

    /// Whether the buffers are free once the replies are sent: no long command or transaction
    /// waits.
    fn can_release_buffers(&self) -> bool {
        self.input.len() <= MIN_BUFFER && self.conversation.session.transaction.is_none()
    }

    /// Makes room for more bytes.
    fn reserve_input(&mut self) -> Result<(), End> {
        let capacity = self.input.capacity();
        let free = capacity - self.input.len();
        let is_needed = free < MIN_BUFFER / 4;
        if is_needed || (self.is_buffer_full && capacity < MAX_BUFFER) {
            let more = capacity.clamp(MIN_BUFFER, MAX_BUFFER).max(free + 1);
            if self.lease_buffers(more) {
                self.input.reserve(more);
            } else if is_needed {
                return Err(End::NoBuffers);
            }
        }
        Ok(())
    }

    /// Waits for more bytes.
    async fn read(&mut self) -> Result<(), End> {
        self.reserve_input()?;
        loop {
            tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.input) => {
                    let read = read?;
                    self.is_buffer_full = self.input.len() == self.input.capacity();
                    return if read == 0 { Err(End::Closed) } else { Ok(()) };
                }
                () = self.tracker.notified() => {}
                () = self.timer.as_mut() => {}
            }
            let is_closing = self.lifecycle.is_closing();
            if is_closing && self.input.is_empty() && self.is_idle() {
                return Err(End::Finished);
            }
            self.check_timeouts(is_closing)?;
            self.shrink();
        }
    }

    /// Sends all replies.
    async fn write(&mut self) -> Result<(), End> {
        let mut sent = 0;
        loop {
            let rest = &self.out.bytes()[sent..];
            tokio::select! {
                biased;
                written = write_some(&mut self.stream, &self.tracker, rest) => match written? {
                    0 if rest.is_empty() => break,
                    0 => return Err(End::Closed),
                    written => {
                        sent += written;
                        continue;
                    }
                },
                () = ready(()), if !self.is_within_budget => return Err(End::NoBuffers),
                () = self.tracker.notified() => {}
                () = self.timer.as_mut() => {}
            }
            self.check_timeouts(self.lifecycle.is_closing())?;
        }
        self.out.clear(if self.is_within_budget { MAX_BUFFER } else { MIN_BUFFER });
        Ok(())
    }

    /// Checks the timeouts, and sets the timer.
    fn check_timeouts(&mut self, is_closing: bool) -> Result<(), End> {
        match self.tracker.status(&self.engine.active().bounds) {
            IdleStatus::Wait(time) => {
                let time = if is_closing { time.min(IDLE_TO_CLOSE / 4) } else { time };
                self.timer.as_mut().set(sleep(time));
                Ok(())
            }
            IdleStatus::Overdue => Err(End::Overdue),
            IdleStatus::Evicted => Err(End::Closed),
        }
    }

    fn is_idle(&self) -> bool {
        self.tracker.idle().is_some_and(|idle| idle >= IDLE_TO_CLOSE)
    }

    /// Frees memory while the connection is idle.
    fn shrink(&mut self) {
        if self.input.is_empty() {
            self.input.shrink_to(MIN_BUFFER);
            self.out.clear(MIN_BUFFER);
            self.conversation.shrink();
            self.is_within_budget = self.lease_buffers(0);
        }
    }

    async fn close(mut self, end: End) {
        let remote = &self.remote;
        match end {
            End::Closed => tracing::debug!(%remote, "connection closed"),
            End::Overdue => {
                self.count_closure(Closure::Overdue);
                tracing::debug!(%remote, "connection overdue");
            }
            End::NoBuffers => {
                self.count_closure(Closure::Failed);
                let (limit, now) = (self.engine.active().bounds.buffers, self.engine.clock().now());
                self.state.buffers.report_refusal(limit, now);
                tracing::debug!(%remote, "connection closed: the buffers are full");
            }
            End::Failed(error) => {
                self.count_closure(Closure::Failed);
                tracing::debug!(%remote, "connection failed: {error}");
            }
            End::Finished => {
                if self.conversation.session.is_broken {
                    self.count_closure(Closure::Failed);
                }
                // All replies were sent: neither an error nor a timeout matters now.
                let _ = timeout(LINGER_TIMEOUT, self.linger()).await;
            }
        }
    }

    /// Closes the sending side, and reads until the client closes too.
    async fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut ignored = [0; 1024];
        while self.stream.read(&mut ignored).await? > 0 {}
        Ok(())
    }

    fn count_closure(&self, reason: Closure) {
        self.engine.counters.listener(ListenerKind::Resp).count_closures(1, reason);
    }
}

/// Sends some bytes; without any, flushes those that TLS has buffered.
async fn write_some(stream: &mut Stream, tracker: &IdleTracker, bytes: &[u8]) -> io::Result<usize> {
    poll_fn(|cx| {
        let stream = Pin::new(&mut *stream);
        let polled = match bytes {
            [] => stream.poll_flush(cx).map_ok(|()| 0),
            _ => stream.poll_write(cx, bytes),
        };
        tracker.record_write(polled.is_pending());
        polled
    })
    .await
}

//! A connection: it reads what there is, answers all of it, writes that once, and reads again.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep, timeout};

use super::asking::Scene;
use super::out::Out;
use super::session::Conversation;
use super::settle::settle;
use crate::daemon::Daemon;
use crate::listener::{Remote, Stream};
use crate::metrics::Cut;
use crate::pulse::{Pulse, Verdict};
use crate::role::Role;

/// What a connection reads into at first, and what it keeps while it is idle.
const SMALL: usize = 4 * 1024;
/// The most that it reads at a time.
const LARGE: usize = 64 * 1024;
/// How long a connection must have been idle to be closed while stopping, as over HTTP.
const IDLE_TO_CLOSE: Duration = Duration::from_secs(1);
/// How long the end is waited for after all was said: closing with bytes unread would take back
/// what the peer has not read yet.
const LINGER: Duration = Duration::from_secs(1);

/// Serves a connection until its peer leaves, dawdles, must make room, or the daemon stops.
pub(crate) async fn serve(daemon: &Arc<Daemon>, stream: Stream, remote: Remote, pulse: Arc<Pulse>) {
    let mut connection = Connection {
        daemon,
        stream,
        remote,
        pulse,
        conversation: Conversation::new(daemon.resp.next_id()),
        input: Vec::with_capacity(SMALL),
        fills: false,
        out: Out::default(),
        alarm: Box::pin(sleep(Duration::ZERO)),
    };
    let end = connection.talk().await;
    connection.end(end).await;
}

struct Connection<'d> {
    daemon: &'d Daemon,
    stream: Stream,
    remote: Remote,
    pulse: Arc<Pulse>,
    conversation: Conversation,
    /// What was read and is not answered: it begins where a command does.
    input: Vec<u8>,
    /// Whether there may have been more to read than there was room for.
    fills: bool,
    out: Out,
    /// When it is looked next whether the peer dawdles. It goes on from one wait to the next: to
    /// set it for each would cost as much as a decision.
    alarm: Pin<Box<Sleep>>,
}

/// How a connection ends.
#[derive(Debug)]
enum End {
    /// The peer has left, or must make room.
    Gone,
    /// All is said, and the peer is to hear it.
    Said,
    Overdue,
    Failed(io::Error),
}

impl From<io::Error> for End {
    fn from(it: io::Error) -> Self {
        End::Failed(it)
    }
}

impl Connection<'_> {
    /// Answers until there is a reason not to go on.
    async fn talk(&mut self) -> End {
        loop {
            if let Err(end) = self.read().await {
                return end;
            }
            loop {
                let is_all = self.answer().await;
                if let Err(end) = self.write().await {
                    return end;
                }
                if self.conversation.session.is_closing {
                    return End::Said;
                }
                if is_all {
                    break;
                }
                // A peer that sends as fast as it is answered must not keep others waiting.
                yield_now().await;
            }
            if self.daemon.is_closing() && self.input.is_empty() {
                return End::Said;
            }
        }
    }

    /// Answers the commands that were read, or as many as are answered at a time; whether that is
    /// all of them.
    async fn answer(&mut self) -> bool {
        let live = self.daemon.live();
        let session = &self.conversation.session;
        let mut scene = Scene::new(self.daemon, &live, &self.remote, session);
        let progress = self.conversation.hear(&self.input, &mut scene, &mut self.out);
        let busy = (progress.used > 0).then(|| self.pulse.begin());
        settle(&mut scene, &mut self.out).await;
        self.conversation.hold(&mut self.out);
        drop((scene, busy));
        if progress.used == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..progress.used);
        }
        if !self.input.is_empty() {
            self.pulse.begins();
        }
        progress.is_all
    }

    /// Waits for more bytes.
    async fn read(&mut self) -> Result<(), End> {
        let capacity = self.input.capacity();
        let is_full = capacity - self.input.len() < SMALL / 4;
        if is_full || (self.fills && capacity < LARGE) {
            self.input.reserve(capacity.clamp(SMALL, LARGE).max(capacity - self.input.len() + 1));
        }
        loop {
            tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.input) => {
                    let read = read?;
                    self.fills = self.input.len() == self.input.capacity();
                    return if read == 0 { Err(End::Gone) } else { Ok(()) };
                }
                () = self.pulse.nudged() => {}
                () = self.alarm.as_mut() => {}
            }
            let stopping = self.daemon.is_closing();
            if stopping && self.input.is_empty() && self.is_long_idle() {
                return Err(End::Said);
            }
            self.look(stopping)?;
            self.give_back();
        }
    }

    /// Writes all replies, however slowly the peer reads them.
    async fn write(&mut self) -> Result<(), End> {
        let mut written = 0;
        loop {
            let rest = self.out.bytes().get(written..).unwrap_or_default();
            tokio::select! {
                biased;
                wrote = write_some(&mut self.stream, rest) => match wrote? {
                    0 if rest.is_empty() => break,
                    0 => return Err(End::Gone),
                    wrote => {
                        written += wrote;
                        if wrote < rest.len() {
                            self.pulse.restart();
                        }
                        continue;
                    }
                },
                () = self.pulse.nudged() => {}
                () = self.alarm.as_mut() => {}
            }
            self.look(self.daemon.is_closing())?;
        }
        self.out.clear(LARGE);
        Ok(())
    }

    /// Holds the peer to its time, and sets the alarm anew.
    fn look(&mut self, stopping: bool) -> Result<(), End> {
        match self.pulse.verdict(&self.daemon.live().bounds) {
            Verdict::Wait(time) => {
                let time = if stopping { time.min(IDLE_TO_CLOSE / 4) } else { time };
                self.alarm.as_mut().set(sleep(time));
                Ok(())
            }
            Verdict::Overdue => Err(End::Overdue),
            Verdict::Evicted => Err(End::Gone),
        }
    }

    fn is_long_idle(&self) -> bool {
        self.pulse.idle().is_some_and(|idle| idle >= IDLE_TO_CLOSE)
    }

    /// Gives memory back while nothing is to be done.
    fn give_back(&mut self) {
        if self.input.is_empty() {
            self.input.shrink_to(SMALL);
            self.out.clear(SMALL);
            self.conversation.shrink();
        }
    }

    async fn end(mut self, end: End) {
        let remote = &self.remote;
        match end {
            End::Gone => tracing::debug!(%remote, "connection ends"),
            End::Overdue => {
                self.cut(Cut::Overdue);
                tracing::debug!(%remote, "connection overdue");
            }
            End::Failed(error) => {
                self.cut(Cut::Failed);
                tracing::debug!(%remote, "connection failed: {error}");
            }
            End::Said => {
                if self.conversation.session.is_broken {
                    self.cut(Cut::Failed);
                }
                // However it ends, all was said.
                let _ = timeout(LINGER, self.linger()).await;
            }
        }
    }

    /// Tells the peer that nothing more comes, and reads what it has sent until it knows.
    async fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut ignored = [0; 1024];
        while self.stream.read(&mut ignored).await? > 0 {}
        Ok(())
    }

    fn cut(&self, why: Cut) {
        self.daemon.metrics.traffic(Role::Resp).cuts(1, why);
    }
}

/// Writes some of the bytes; if there are none, those that TLS has kept.
async fn write_some(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() { stream.flush().await.map(|()| 0) } else { stream.write(bytes).await }
}

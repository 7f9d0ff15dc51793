//! Closing a connection whose peer is still sending.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time for the peer to read the response and close.
const MAX_TIME: Duration = Duration::from_secs(2);
/// The most bytes that are discarded.
const MAX_BYTES: usize = 1024 * 1024;

/// Reads and discards what the peer still sends. Closing a socket with unread bytes resets the
/// connection, and the peer may lose a response that it has not read: a gateway would treat a
/// rejected request like a daemon that is unavailable.
#[derive(Debug)]
pub(super) struct Linger {
    timer: Pin<Box<Sleep>>,
    discarded: usize,
}

impl Linger {
    pub(super) fn new() -> Self {
        Linger { timer: Box::pin(sleep(MAX_TIME)), discarded: 0 }
    }

    /// Ready once the peer has closed its side or a bound is reached.
    pub(super) fn poll_discard(
        &mut self,
        mut stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        while self.discarded < MAX_BYTES && self.timer.as_mut().poll(cx).is_pending() {
            let mut scratch = [0; 4096];
            let mut buffer = ReadBuf::new(&mut scratch);
            // After an error there is nothing left to read.
            let is_open = ready!(stream.as_mut().poll_read(cx, &mut buffer)).is_ok();
            if !is_open || buffer.filled().is_empty() {
                break;
            }
            self.discarded = self.discarded.saturating_add(buffer.filled().len());
        }
        Poll::Ready(())
    }
}

//! A client without a socket, for tests and fuzz targets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tollgate::MemoryLimiter;
use tollgate_engine::{ActiveConfig, Engine, PeerAddress, Remote};

use super::RespState;
use super::context::BatchContext;
use super::conversation::Conversation;
use super::reply_buffer::ReplyBuffer;
use tollgate_config::Config;
use tollgate_transport::{BufferBudget, ConnectionLimiter};

/// A Redis client without a socket, for tests and fuzz targets.
///
/// # Examples
/// ```
/// use tollgate::MemoryLimiter;
/// use tollgate_config::Config;
/// use tollgate_resp::RespReplay;
/// let mut client = RespReplay::new(&Config::default(), MemoryLimiter::new())?;
/// assert_eq!(client.send(b"PI"), b"");
/// assert_eq!(client.send(b"NG\r\n"), b"+PONG\r\n");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct RespReplay {
    engine: Engine,
    state: RespState,
    remote: Remote,
    pub(super) conversation: Conversation,
    input: Vec<u8>,
    out: ReplyBuffer,
}

impl RespReplay {
    /// Creates a client on this machine.
    ///
    /// # Errors
    /// The configuration's tokens cannot be used.
    pub fn new(config: &Config, limiter: MemoryLimiter) -> Result<Self, String> {
        let state = RespState::new(
            Arc::new(ConnectionLimiter::default()),
            Arc::new(BufferBudget::default()),
        );
        let conversation = Conversation::new(state.next_id());
        Ok(RespReplay {
            engine: Engine::new(ActiveConfig::new(config)?, limiter.into()),
            state,
            remote: Remote::new(PeerAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)))),
            conversation,
            input: Vec::new(),
            out: ReplyBuffer::default(),
        })
    }

    /// Sends bytes, and returns the replies.
    pub fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut replies = Vec::new();
        self.send_into(bytes, &mut replies);
        replies
    }

    /// Sends bytes, and appends the replies to a buffer.
    pub fn send_into(&mut self, bytes: &[u8], replies: &mut Vec<u8>) {
        self.input.extend_from_slice(bytes);
        let mut consumed = 0;
        loop {
            let active = self.engine.active();
            let session = &self.conversation.session;
            let mut batch =
                BatchContext::new(&self.engine, &self.state, &active, &self.remote, session);
            let rest = &self.input[consumed..];
            let max_output = active.bounds.output;
            let progress = self.conversation.execute(rest, max_output, &mut batch, &mut self.out);
            drop(batch);
            consumed += progress.consumed;
            replies.extend_from_slice(self.out.bytes());
            self.out.clear(usize::MAX);
            if !progress.has_more {
                break;
            }
        }
        self.input.drain(..consumed);
    }

    /// Whether the connection would have been closed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.conversation.session.is_closing
    }
}

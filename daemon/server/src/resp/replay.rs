//! A client without a socket, for tests and fuzz targets.

use std::net::{Ipv4Addr, SocketAddr};

use tollgate::MemoryLimiter;

use super::asking::Scene;
use super::out::Out;
use super::session::Conversation;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::listener::{Peer, Remote};
use crate::live::Live;

/// What a client of Redis sends and is answered, without a socket: for tests and fuzz targets.
///
/// # Example
/// ```
/// use tollgate::MemoryLimiter;
/// use tollgate_server::{Config, RespReplay};
/// let mut client = RespReplay::new(&Config::default(), MemoryLimiter::new())?;
/// assert_eq!(client.send(b"PI"), b"");
/// assert_eq!(client.send(b"NG\r\n"), b"+PONG\r\n");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct RespReplay {
    daemon: Daemon,
    remote: Remote,
    conversation: Conversation,
    input: Vec<u8>,
    out: Out,
}

impl RespReplay {
    /// A client on this machine.
    ///
    /// # Errors
    /// The configuration's tokens cannot be used.
    pub fn new(config: &Config, limiter: MemoryLimiter) -> Result<Self, String> {
        let daemon = Daemon::new(Live::of(config)?, limiter.into());
        let conversation = Conversation::new(daemon.resp.next_id());
        let remote = Remote::at(Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))));
        Ok(RespReplay { daemon, remote, conversation, input: Vec::new(), out: Out::default() })
    }

    /// Sends bytes; what is answered to them.
    pub fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let mut replies = Vec::new();
        let mut used = 0;
        loop {
            let live = self.daemon.live();
            let session = &self.conversation.session;
            let mut scene = Scene::new(&self.daemon, &live, &self.remote, session);
            let rest = self.input.get(used..).unwrap_or_default();
            let progress = self.conversation.hear(rest, &mut scene, &mut self.out);
            drop(scene);
            self.conversation.hold(&mut self.out);
            used += progress.used;
            replies.append(&mut self.out.take());
            if progress.is_all {
                break;
            }
        }
        self.input.drain(..used);
        replies
    }

    /// Whether the connection would have ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.conversation.session.is_closing
    }
}

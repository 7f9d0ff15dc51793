//! The two ends of a connection, and what is on its way between them.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::task::Waker;
use std::time::Duration;

use crate::node::Session;
use crate::resp::Parser;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// What TCP transports.
#[derive(Debug)]
pub(crate) enum Packet {
    /// The request of the client, or the server's confirmation.
    Open,
    Bytes(Vec<u8>),
    /// The sender has closed its end.
    Close,
    /// The sender has dropped the connection.
    Reset,
}

/// A direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// When the last packet arrives.
    pub(super) last: Duration,
    /// Packets that wait until the direction is no longer blocked.
    pub(super) held: VecDeque<Packet>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) is_open: bool,
    /// Whether the client writes no more, and whether it has also dropped its end.
    pub(super) has_shut_down: bool,
    pub(super) is_closed: bool,
    /// The bytes that have arrived at the client, to be read.
    pub(crate) inbox: VecDeque<u8>,
    /// Whether the server has closed its end.
    pub(crate) has_ended: bool,
    /// Why the client's end was lost.
    pub(crate) failure: Option<ErrorKind>,
    pub(crate) waker: Option<Waker>,
    pub(super) to_client: Direction,
    pub(super) to_server: Direction,
    pub(super) unacknowledged_since: Option<Duration>,
    /// The server's end.
    pub(crate) peer: Option<Peer>,
}

/// The server's end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) session: Session,
    pub(crate) parser: Parser,
    pub(crate) is_accepted: bool,
    /// Whether the client has closed its end.
    pub(crate) has_ended: bool,
    /// Whether replies are lost.
    pub(crate) is_stalled: bool,
    /// When the last reply is sent, and the number of replies that are not sent yet.
    pub(crate) replies_at: Duration,
    pub(crate) pending_replies: usize,
}

impl Connection {
    pub(super) fn direction(&mut self, to: End) -> &mut Direction {
        match to {
            End::Client => &mut self.to_client,
            End::Server => &mut self.to_server,
        }
    }

    /// Returns whether both ends are closed.
    pub(super) fn is_gone(&self) -> bool {
        self.is_closed && self.peer.is_none()
    }

    /// Returns why the client cannot write.
    pub(crate) fn write_error(&self) -> Option<ErrorKind> {
        self.failure.or(self.has_shut_down.then_some(ErrorKind::BrokenPipe))
    }
}

//! Who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// From this address.
    Tcp(SocketAddr),
    /// From a process of this machine that may open the socket's file.
    Unix,
}

impl Peer {
    /// Whether it is on this machine.
    pub(crate) fn is_local(self) -> bool {
        match self {
            Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Peer::Unix => true,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => write!(f, "{address}"),
            Peer::Unix => f.write_str("unix"),
        }
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) peer: Peer,
    /// Whom its certificate names, where it had to show one.
    pub(crate) subject: Option<Arc<str>>,
}

impl Remote {
    /// Somebody of whom no more is known than where.
    pub(crate) fn at(peer: Peer) -> Self {
        Remote { peer, subject: None }
    }
}

/// As a line of a log names it.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)?;
        match &self.subject {
            Some(subject) => write!(f, " ({subject})"),
            None => Ok(()),
        }
    }
}

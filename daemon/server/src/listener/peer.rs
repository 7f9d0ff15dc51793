//! The remote end of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A local process that may open the Unix socket.
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

/// The remote end of a connection, with the subject of its certificate.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) peer: Peer,
    /// The subject of its client certificate, if the listener requires one.
    pub(crate) subject: Option<Arc<str>>,
}

impl Remote {
    /// A remote end without a certificate.
    pub(crate) fn at(peer: Peer) -> Self {
        Remote { peer, subject: None }
    }
}

/// Formats the remote end for log lines.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)?;
        match &self.subject {
            Some(subject) => write!(f, " ({subject})"),
            None => Ok(()),
        }
    }
}

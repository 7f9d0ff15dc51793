//! Sockets, TLS, and the limit on connections.

mod accept;
mod error;
mod peer;
mod places;
mod socket;
mod stream;
mod tls;
mod unix;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;

pub(crate) use self::accept::Accepting;
pub use self::error::ListenError;
pub(crate) use self::peer::{Peer, Remote};
pub(crate) use self::places::Places;
use self::socket::Socket;
pub(crate) use self::stream::Stream;
pub use self::tls::{Tls, TlsError};
use self::unix::UnixSocket;

/// A bound socket, with or without TLS.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    tls: Option<Tls>,
}

impl Listener {
    /// Listens on a Unix socket, which this user and its group may connect to. A socket file that
    /// another process has left behind is replaced; dropping the listener removes the file.
    ///
    /// # Errors
    /// Another process listens there, or the path cannot be used; the message states what to do.
    pub async fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
        Ok(Listener { socket: Socket::Unix(UnixSocket::bind(path).await?), tls: None })
    }

    /// Sets or removes TLS.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Listener {
        Listener { tls, ..self }
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn address(&self) -> io::Result<ListenAddress> {
        Ok(match &self.socket {
            Socket::Tcp(tcp) => ListenAddress::Tcp(tcp.local_addr()?),
            Socket::Unix(unix) => ListenAddress::Unix(unix.path().to_owned()),
        })
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Listener { socket: Socket::Tcp(listener), tls: None }
    }
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(std::path::PathBuf),
}

/// Formats the address as the configuration writes it.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The bound sockets, by purpose.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For `/v1`, `/livez` and `/readyz`.
    pub http: Option<Listener>,
    /// For Envoy's rate limit service.
    pub grpc: Option<Listener>,
    /// For clients of Redis.
    pub resp: Option<Listener>,
    /// For `/metrics`, `/livez` and `/readyz`, apart from the traffic of gateways.
    pub metrics: Option<Listener>,
    /// For debugging. Every client that can connect may read the active configuration.
    pub debug: Option<Listener>,
}

impl Listeners {
    /// The TLS configurations of the listeners, each once.
    pub(crate) fn tls(&self) -> Vec<Tls> {
        let mut all: Vec<Tls> = Vec::new();
        let listeners = [&self.http, &self.grpc, &self.resp, &self.metrics, &self.debug];
        for tls in listeners.into_iter().flatten().filter_map(|listener| listener.tls.as_ref()) {
            if !all.iter().any(|x| x.is(tls)) {
                all.push(tls.clone());
            }
        }
        all
    }
}

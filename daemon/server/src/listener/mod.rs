//! Where peers come in: sockets, TLS on them, and how many may be in at a time.

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

/// A socket that the caller has bound, and whether TLS is spoken there.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    tls: Option<Tls>,
}

impl Listener {
    /// Listens at a path of the file system, which this user and its group may open. A socket that
    /// a process has left there is replaced; the file goes when the listener does.
    ///
    /// # Errors
    /// Somebody listens there, or the path cannot be one; the error says what to do.
    pub async fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
        Ok(Listener { socket: Socket::Unix(UnixSocket::bind(path).await?), tls: None })
    }

    /// The same, with TLS spoken there if it is given.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Listener {
        Listener { tls, ..self }
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not say.
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

/// Where a listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// At this address.
    Tcp(SocketAddr),
    /// At this path.
    Unix(std::path::PathBuf),
}

/// As it is written in the configuration.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The sockets that the caller has bound.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For `/v1`, `/livez` and `/readyz`.
    pub http: Option<Listener>,
    /// For Envoy's rate limit service.
    pub grpc: Option<Listener>,
    /// For clients of Redis.
    pub resp: Option<Listener>,
    /// For `/livez` and `/readyz` where no gateway sends anybody.
    pub metrics: Option<Listener>,
    /// For people who debug: anybody who reaches it may read what is in force.
    pub debug: Option<Listener>,
}

impl Listeners {
    /// What TLS they speak, each once.
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

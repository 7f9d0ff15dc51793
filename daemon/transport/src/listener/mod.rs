//! Listeners: sockets, and TLS on them.

mod stream;
mod tls;
mod unix;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tollgate_engine::PeerAddress;

pub use self::stream::Stream;
pub use self::tls::Tls;
pub use self::unix::ListenError;
use self::unix::UnixSocket;

/// A listening socket.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixSocket),
}

/// A new connection.
#[derive(Debug)]
pub enum Accepted {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Accepts a connection. Cancel safe.
    pub async fn accept(&self) -> io::Result<(Accepted, PeerAddress)> {
        match self {
            Socket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // An optimisation: responses are small, and clients wait for them.
                let _ = stream.set_nodelay(true);
                Ok((Accepted::Tcp(stream), PeerAddress::Tcp(address)))
            }
            Socket::Unix(listener) => {
                let stream = listener.accept().await?;
                Ok((Accepted::Unix(stream), PeerAddress::Unix))
            }
        }
    }
}

/// A bound socket, with or without TLS.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: Socket,
    /// TLS, if it is enabled.
    pub tls: Option<Tls>,
}

impl Listener {
    /// Listens on a Unix socket, which this user and its group may open. A socket that a process
    /// has left there is replaced. The file is removed when the listener is dropped.
    ///
    /// # Errors
    /// Another process listens there, or the path is invalid; the error says how to fix it.
    pub async fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
        Ok(Listener { socket: Socket::Unix(UnixSocket::bind(path).await?), tls: None })
    }

    /// Enables TLS, if given.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Listener {
        Listener { tls, ..self }
    }

    /// Its address.
    ///
    /// # Errors
    /// The system does not return it.
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
    /// A path.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Whether only this machine reaches it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            ListenAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
            ListenAddress::Unix(_) => true,
        }
    }
}

/// As in the configuration.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The bound sockets.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For `/v1`, `/livez` and `/readyz`.
    pub http: Option<Listener>,
    /// For Envoy's rate limit service.
    pub grpc: Option<Listener>,
    /// For Redis clients.
    pub resp: Option<Listener>,
    /// For the metrics page, `/livez` and `/readyz`, apart from gateways.
    pub metrics: Option<Listener>,
    /// For debugging: every client that reaches it may read the effective configuration.
    pub debug: Option<Listener>,
    /// For the dashboard and its API.
    pub admin: Option<Listener>,
}

impl Listeners {
    /// The TLS settings of the listeners, without duplicates.
    pub fn tls(&self) -> Vec<Tls> {
        let mut all: Vec<Tls> = Vec::new();
        let listeners =
            [&self.http, &self.grpc, &self.resp, &self.metrics, &self.debug, &self.admin];
        for tls in listeners.into_iter().flatten().filter_map(|listener| listener.tls.as_ref()) {
            if !all.iter().any(|other| other.ptr_eq(tls)) {
                all.push(tls.clone());
            }
        }
        all
    }
}

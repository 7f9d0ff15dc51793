//! Listening sockets: TCP, or a Unix socket.

use std::io;

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tollgate_engine::PeerAddress;

use super::unix::UnixSocket;

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

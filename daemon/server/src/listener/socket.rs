//! A listening socket: TCP or Unix.

use std::io;

use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::peer::Peer;
use super::unix::UnixSocket;

/// A listening socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// An accepted connection, before any handshake.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Accepts the next connection. Cancel safe.
    pub(super) async fn accept(&self) -> io::Result<(Accepted, Peer)> {
        match self {
            Socket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Responses are small and latency matters. Without the option they are only slower.
                let _ = stream.set_nodelay(true);
                Ok((Accepted::Tcp(stream), Peer::Tcp(address)))
            }
            Socket::Unix(listener) => {
                let stream = listener.accept().await?;
                Ok((Accepted::Unix(stream), Peer::Unix))
            }
        }
    }
}

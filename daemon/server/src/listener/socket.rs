//! A socket that is listened at: TCP, or a file.

use std::io;

use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::peer::Peer;
use super::unix::UnixSocket;

/// A socket that is listened at.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// A connection as it was accepted, before anything is said on it.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// The next peer. Nobody is lost if it is dropped.
    pub(super) async fn accept(&self) -> io::Result<(Accepted, Peer)> {
        match self {
            Socket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Answers are small and waited for.
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

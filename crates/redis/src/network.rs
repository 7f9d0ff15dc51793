//! The network, which a simulation replaces.

use std::fmt;
use std::io;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// Opens streams to servers in place of TCP and TLS, for simulations.
pub trait Network: fmt::Debug + Send + Sync {
    /// Connects to a server.
    fn connect(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// A stream of bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

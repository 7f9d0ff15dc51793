//! Connecting and reconnecting.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::reply::{ErrorKind, RequestError};
use crate::worker::Worker;

/// How many times in a row a connection may fail before it is given up, and the pause in between.
const MAX_FAILURES: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Connects to the target.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    /// `HOST:PORT`.
    pub(crate) address: String,
    pub(crate) timeout: Duration,
}

impl Connector {
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = timeout(self.timeout, TcpStream::connect(&self.address)).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Why a session over one connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// All requests are sent and answered.
    Finished,
    /// The server announced that it closes the connection.
    Closed,
    /// The connection cannot be used any more.
    Failed,
}

/// Why no other connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// All requests are sent and answered.
    Finished,
    /// The target failed too many times in a row.
    GaveUp,
}

/// Runs sessions over `first`, and over new connections whenever one ends.
pub(crate) async fn drive(
    worker: &Worker,
    connector: &Connector,
    first: io::Result<TcpStream>,
    mut run_session: impl AsyncFnMut(TcpStream) -> SessionEnd,
) -> ConnectionEnd {
    let (mut stream, mut failures) = (first, 0);
    loop {
        let end = match stream {
            Ok(connected) => run_session(connected).await,
            Err(error) => {
                worker.record_error(RequestError::new(ErrorKind::Refused, error));
                SessionEnd::Failed
            }
        };
        match end {
            SessionEnd::Finished => return ConnectionEnd::Finished,
            SessionEnd::Closed => {}
            SessionEnd::Failed => {
                failures = if worker.take_has_response() { 1 } else { failures + 1 };
                if failures == MAX_FAILURES {
                    return ConnectionEnd::GaveUp;
                }
                tokio::time::sleep(RETRY_DELAY).await;
                if worker.is_finished() {
                    return ConnectionEnd::Finished;
                }
            }
        }
        stream = connector.connect().await;
    }
}

//! Connecting and reconnecting.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::plan::Endpoint;
use crate::worker::Worker;

/// How many times in a row a connection may fail before it is given up, and the pause in between.
const MAX_FAILURES: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Connects to an endpoint within the timeout.
pub(crate) async fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<TcpStream> {
    let stream = timeout(limit, TcpStream::connect(endpoint.address())).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Why a connection is not opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// All requests are sent and answered.
    Finished,
    /// The target failed too many times in a row.
    GaveUp,
}

/// Replaces a connection that failed.
#[derive(Debug, Default)]
pub(crate) struct Reconnect {
    failures: u32,
}

impl Reconnect {
    /// Opens another connection after a pause.
    pub(crate) async fn next(
        &mut self,
        worker: &Worker,
    ) -> ControlFlow<ConnectionEnd, io::Result<TcpStream>> {
        self.failures = if worker.take_has_response() { 1 } else { self.failures + 1 };
        if self.failures == MAX_FAILURES {
            return ControlFlow::Break(ConnectionEnd::GaveUp);
        }
        tokio::time::sleep(RETRY_DELAY).await;
        if worker.is_finished() {
            return ControlFlow::Break(ConnectionEnd::Finished);
        }
        ControlFlow::Continue(connect(&worker.endpoint, worker.timeout).await)
    }
}

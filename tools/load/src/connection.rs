//! Connections, made one after the other while there is something to ask and somebody to ask it.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::plan::Peer;
use crate::worker::Worker;

/// How often in a row a connection is refused or lost before it is given up, and how long it waits
/// in between.
const MAX_FAILURES: u32 = 10;
const BETWEEN_FAILURES: Duration = Duration::from_millis(100);

/// Connects to a peer, if it is patient for so long.
pub(crate) async fn connect(peer: &Peer, patience: Duration) -> io::Result<TcpStream> {
    let stream = timeout(patience, TcpStream::connect(peer.address())).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// How a connection ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There is nothing more to ask.
    Done,
    /// There is nobody to ask any more.
    Gone,
}

/// One connection in place of another that failed.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failures: u32,
}

impl Attempts {
    /// Makes another connection after a while.
    pub(crate) async fn another(
        &mut self,
        worker: &Worker,
    ) -> ControlFlow<Ended, io::Result<TcpStream>> {
        self.failures = if worker.take_answered() { 1 } else { self.failures + 1 };
        if self.failures == MAX_FAILURES {
            return ControlFlow::Break(Ended::Gone);
        }
        tokio::time::sleep(BETWEEN_FAILURES).await;
        if worker.is_over() {
            return ControlFlow::Break(Ended::Done);
        }
        ControlFlow::Continue(connect(&worker.peer, worker.patience).await)
    }
}

//! Accepting connections, and closing the listener.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use tollgate_engine::{Closure, PeerAddress, Remote};

use crate::serving::Serving;
use tollgate_transport::{Accepted, ConnectionPermit, IdleTracker, Listener, Socket, Stream, Tls};

/// The pause after an error, such as a lack of file descriptors.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// A listener that accepts connections.
#[derive(Debug)]
pub(crate) struct Accepting {
    socket: Socket,
    tls: Option<Tls>,
    serving: Arc<Serving>,
    /// A connection that waits for others to close.
    waiting: Option<(Accepted, PeerAddress)>,
    connections: JoinSet<()>,
}

impl Accepting {
    pub(crate) fn new(listener: Listener, serving: Serving) -> Self {
        let Listener { socket, tls } = listener;
        let serving = Arc::new(serving);
        Accepting { socket, tls, serving, waiting: None, connections: JoinSet::new() }
    }

    /// Accepts until `closing` is true, and then those that wait already, so that closing the
    /// listener resets none. Open connections are closed after `drain_timeout`.
    pub(crate) async fn run(mut self, mut closing: watch::Receiver<bool>, drain_timeout: Duration) {
        loop {
            tokio::select! {
                biased;
                _ = closing.wait_for(|is_closing| *is_closing) => break,
                () = self.accept() => {}
            }
        }
        self.accept_waiting().await;
        let Accepting { socket, serving, mut connections, .. } = self;
        drop(socket);
        serving.connections().notify_all();
        let ended =
            timeout(drain_timeout, async { while connections.join_next().await.is_some() {} });
        if ended.await.is_err() {
            tracing::warn!("{} connections closed after {drain_timeout:?}", connections.len());
            serving.count_closures(connections.len(), Closure::Drained);
        }
        connections.shutdown().await;
        tracing::debug!(totals = ?serving.connections().totals(), "all connections closed");
    }

    /// Accepts a connection, and waits until the limit permits it. Cancel safe.
    async fn accept(&mut self) {
        while self.connections.try_join_next().is_some() {}
        if self.waiting.is_none() {
            match self.socket.accept().await {
                // The connection is closed.
                Ok((_, peer)) if !self.serving.admits(peer) => return,
                Ok(accepted) => self.waiting = Some(accepted),
                // The client closed the connection while it waited.
                Err(error) if is_client_error(&error) => return,
                Err(error) => {
                    tracing::warn!("cannot accept connections: {error}");
                    return sleep(ERROR_PAUSE).await;
                }
            }
        }
        self.serving.wait_for_connection_limit().await;
        self.serve_waiting();
    }

    /// Accepts connections that wait already, up to the limit.
    async fn accept_waiting(&mut self) {
        self.serve_waiting();
        while !self.serving.is_full() {
            tokio::select! {
                biased;
                Ok(accepted) = self.socket.accept() => self.waiting = Some(accepted),
                () = std::future::ready(()) => return,
            }
            self.serve_waiting();
        }
    }

    fn serve_waiting(&mut self) {
        let Some((accepted, peer)) = self.waiting.take() else { return };
        let (serving, tls) = (Arc::clone(&self.serving), self.tls.clone());
        let tracker = Arc::new(serving.new_tracker());
        let permit = serving.connections().add(Arc::clone(&tracker), peer);
        self.connections.spawn(serve(accepted, peer, tls, serving, tracker, permit));
    }
}

/// Serves a connection from its beginning to its end.
async fn serve(
    accepted: Accepted,
    peer: PeerAddress,
    tls: Option<Tls>,
    serving: Arc<Serving>,
    tracker: Arc<IdleTracker>,
    permit: ConnectionPermit,
) {
    let connection = match tls {
        None => Some((plain(accepted), Remote::new(peer))),
        Some(tls) => handshake(accepted, peer, &tls, &serving, &tracker).await,
    };
    if let Some((stream, remote)) = connection {
        let authentication = Arc::clone(tracker.authentication());
        let has_loopback_listener = serving.is_on_loopback();
        let remote = Remote { authentication, has_loopback_listener, ..remote };
        if remote.certificate.is_some() {
            remote.authentication.finish();
        }
        serving.serve(stream, remote, tracker).await;
    }
    drop(permit);
}

/// Performs the TLS handshake within the header timeout, unless the connection is evicted.
async fn handshake(
    accepted: Accepted,
    peer: PeerAddress,
    tls: &Tls,
    serving: &Serving,
    tracker: &IdleTracker,
) -> Option<(Stream, Remote)> {
    let limit = serving.header_timeout();
    let result = tokio::select! {
        result = timeout(limit, accept_tls(accepted, peer, tls)) => result,
        () = tracker.evicted() => return None,
    };
    let error = match result {
        Ok(Ok(connection)) => {
            tracker.restart();
            return Some(connection);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("timeout after {limit:?}"),
    };
    serving.connections().count_failed_handshake();
    tracing::debug!(%peer, "TLS handshake failed: {error}");
    None
}

fn plain(accepted: Accepted) -> Stream {
    match accepted {
        Accepted::Tcp(tcp) => Stream::Tcp(tcp),
        Accepted::Unix(unix) => Stream::Unix(unix),
    }
}

async fn accept_tls(
    accepted: Accepted,
    peer: PeerAddress,
    tls: &Tls,
) -> io::Result<(Stream, Remote)> {
    let (stream, certificate) = match accepted {
        Accepted::Tcp(tcp) => {
            let (stream, certificate) = tls.accept(tcp).await?;
            (Stream::TlsTcp(Box::new(stream)), certificate)
        }
        Accepted::Unix(unix) => {
            let (stream, certificate) = tls.accept(unix).await?;
            (Stream::TlsUnix(Box::new(stream)), certificate)
        }
    };
    Ok((stream, Remote { certificate: certificate.map(Arc::new), ..Remote::new(peer) }))
}

fn is_client_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

//! Accepting connections until the daemon stops, and closing those that remain.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Listener;
use super::peer::{Peer, Remote};
use super::places::Place;
use super::socket::{Accepted, Socket};
use super::stream::Stream;
use super::tls::Tls;
use crate::connection::Serving;
use crate::metrics::Cut;
use crate::pulse::Pulse;

/// The pause after `accept` failed, for example because file descriptors ran out.
const REST: Duration = Duration::from_millis(50);

/// A listener that accepts connections.
#[derive(Debug)]
pub(crate) struct Accepting {
    socket: Socket,
    tls: Option<Tls>,
    serving: Arc<Serving>,
    /// A connection that waits for a free place.
    waiting: Option<(Accepted, Peer)>,
    connections: JoinSet<()>,
}

impl Accepting {
    pub(crate) fn new(listener: Listener, serving: Serving) -> Self {
        let Listener { socket, tls } = listener;
        let serving = Arc::new(serving);
        Accepting { socket, tls, serving, waiting: None, connections: JoinSet::new() }
    }

    /// Accepts connections until `closing` is true, then those that are already in the backlog, so
    /// that closing the listener drops no client. Waits for the open connections to end, and closes
    /// those that remain after `within`.
    pub(crate) async fn run(mut self, mut closing: watch::Receiver<bool>, within: Duration) {
        loop {
            tokio::select! {
                biased;
                _ = closing.wait_for(|it| *it) => break,
                () = self.accept() => {}
            }
        }
        self.accept_waiting().await;
        let Accepting { socket, serving, mut connections, .. } = self;
        drop(socket);
        serving.places().nudge();
        let ended = timeout(within, async { while connections.join_next().await.is_some() {} });
        if ended.await.is_err() {
            tracing::warn!(
                "closed {} connections after the drain timeout of {within:?}",
                connections.len()
            );
            serving.cut(connections.len(), Cut::Drained);
        }
        connections.shutdown().await;
        tracing::debug!(totals = ?serving.places().totals(), "all connections closed");
    }

    /// Waits for a connection, and for a place for it. Cancel safe.
    async fn accept(&mut self) {
        while self.connections.try_join_next().is_some() {}
        if self.waiting.is_none() {
            match self.socket.accept().await {
                Ok(accept) => self.waiting = Some(accept),
                // The peer left while it waited in the backlog.
                Err(error) if is_of_the_peer(&error) => return,
                Err(error) => {
                    tracing::warn!("cannot accept connections: {error}");
                    return sleep(REST).await;
                }
            }
        }
        self.serving.wait_for_place().await;
        self.serve_waiting();
    }

    /// Accepts the connections in the backlog, as far as there are places.
    async fn accept_waiting(&mut self) {
        self.serve_waiting();
        while self.serving.has_place() {
            tokio::select! {
                biased;
                Ok(it) = self.socket.accept() => self.waiting = Some(it),
                () = std::future::ready(()) => return,
            }
            self.serve_waiting();
        }
    }

    fn serve_waiting(&mut self) {
        let Some((accepted, peer)) = self.waiting.take() else { return };
        let (serving, tls) = (Arc::clone(&self.serving), self.tls.clone());
        let pulse = Arc::new(serving.pulse());
        let place = serving.places().take(Arc::clone(&pulse));
        self.connections.spawn(serve(accepted, peer, tls, serving, pulse, place));
    }
}

/// Serves a connection until it ends.
async fn serve(
    accepted: Accepted,
    peer: Peer,
    tls: Option<Tls>,
    serving: Arc<Serving>,
    pulse: Arc<Pulse>,
    place: Place,
) {
    let begun = match tls {
        None => Some(accepted.plain(peer)),
        Some(tls) => agree(accepted, peer, &tls, &serving, &pulse).await,
    };
    if let Some((stream, remote)) = begun {
        serving.serve(stream, remote, pulse).await;
    }
    drop(place);
}

/// Performs the TLS handshake within the header timeout, unless the connection is evicted first.
async fn agree(
    accepted: Accepted,
    peer: Peer,
    tls: &Tls,
    serving: &Serving,
    pulse: &Pulse,
) -> Option<(Stream, Remote)> {
    let within = serving.header_timeout();
    let agreed = tokio::select! {
        agreed = timeout(within, accepted.encrypted(peer, tls)) => agreed,
        () = pulse.evicted() => return None,
    };
    let why = match agreed {
        Ok(Ok(agreed)) => {
            pulse.restart();
            return Some(agreed);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("not completed within {within:?}"),
    };
    serving.places().count_failed_handshake();
    tracing::debug!(%peer, "TLS handshake failed: {why}");
    None
}

impl Accepted {
    fn plain(self, peer: Peer) -> (Stream, Remote) {
        let stream = match self {
            Accepted::Tcp(tcp) => Stream::Tcp(tcp),
            Accepted::Unix(unix) => Stream::Unix(unix),
        };
        (stream, Remote::at(peer))
    }

    async fn encrypted(self, peer: Peer, tls: &Tls) -> io::Result<(Stream, Remote)> {
        let (stream, subject) = match self {
            Accepted::Tcp(tcp) => {
                let (stream, subject) = tls.accept(tcp).await?;
                (Stream::TlsTcp(Box::new(stream)), subject)
            }
            Accepted::Unix(unix) => {
                let (stream, subject) = tls.accept(unix).await?;
                (Stream::TlsUnix(Box::new(stream)), subject)
            }
        };
        Ok((stream, Remote { peer, subject }))
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

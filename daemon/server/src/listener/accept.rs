//! Accepting connections at a listener, and the end of it.

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

/// How long accepting rests after it failed, as it does when file descriptors have run out.
const REST: Duration = Duration::from_millis(50);

/// A listener at which connections are accepted.
#[derive(Debug)]
pub(crate) struct Accepting {
    socket: Socket,
    tls: Option<Tls>,
    serving: Arc<Serving>,
    /// Whom there is no place for yet.
    waiting: Option<(Accepted, Peer)>,
    connections: JoinSet<()>,
}

impl Accepting {
    pub(crate) fn new(listener: Listener, serving: Serving) -> Self {
        let Listener { socket, tls } = listener;
        let serving = Arc::new(serving);
        Accepting { socket, tls, serving, waiting: None, connections: JoinSet::new() }
    }

    /// Accepts until `closing` says so; then whoever waits already, so that a listener is closed
    /// on nobody. What is under way then is finished, or cut after `within`.
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
            tracing::warn!("{} connections were cut after {within:?}", connections.len());
            serving.cut(connections.len(), Cut::Drained);
        }
        connections.shutdown().await;
        tracing::debug!(totals = ?serving.places().totals(), "no connection is left");
    }

    /// Waits for a peer, and for a place for it. Nothing is lost if it is dropped.
    async fn accept(&mut self) {
        while self.connections.try_join_next().is_some() {}
        if self.waiting.is_none() {
            match self.socket.accept().await {
                Ok(accept) => self.waiting = Some(accept),
                // A peer that left while it waited is its own affair.
                Err(error) if is_of_the_peer(&error) => return,
                Err(error) => {
                    tracing::warn!("no connection could be accepted: {error}");
                    return sleep(REST).await;
                }
            }
        }
        self.serving.wait_for_place().await;
        self.serve_waiting();
    }

    /// Accepts whoever waits already, as far as there are places.
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

/// A connection from its beginning to its end.
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

/// Agrees on TLS, within the time for a head, as long as nobody else needs the place.
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
        Err(_) => format!("not done after {within:?}"),
    };
    serving.places().count_failed_handshake();
    tracing::debug!(%peer, "TLS was not agreed on: {why}");
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

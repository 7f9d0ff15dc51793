//! Accepting connections, and the end of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tollgate::Limiter;

use crate::config::Config;
use crate::connection;
use crate::daemon::Daemon;
use crate::metrics::{Connected, Cut, Listener};
use crate::reload::{self, OverridesFiles, Reload};
use crate::store_watch;

/// The sockets that the caller has bound.
#[derive(Debug)]
pub struct Listeners {
    /// For `/v1`, `/livez` and `/readyz`.
    pub http: TcpListener,
    /// For `/metrics`.
    pub metrics: Option<TcpListener>,
}

/// How often memory of recovered keys is given back, and how much of each shard is looked over.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const SWEEP_PLACES: usize = 64;
/// How long accepting rests after it failed, as it does when file descriptors have run out.
const REST: Duration = Duration::from_millis(50);

/// Serves until `stop` is ready and what was under way is answered, at most the time that the
/// configuration gives it.
///
/// Decisions are made on the tasks of connections; on memory they never wait. What becomes of a
/// store on Redis is logged: when it comes, when it goes, and what about it may surprise later.
///
/// # Errors
/// The listener is not one that can be asked for its address; a file of overrides cannot be used.
pub async fn run(
    config: Config,
    listeners: Listeners,
    limiter: impl Into<Limiter>,
    reload: Option<Reload>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let Listeners { http: listener, metrics } = listeners;
    tracing::debug!(address = %listener.local_addr()?, "listening");
    let drain_timeout = config.drain.timeout;
    let mut overrides = OverridesFiles::default();
    let live = overrides.live(&config).map_err(io::Error::other)?;
    let daemon = Arc::new(Daemon::new(live, limiter.into()));
    let mut watch = store_watch::start(&daemon);
    if let Some(reload) = reload {
        watch.spawn(reload::watch(reload, config, overrides, Arc::clone(&daemon)));
    }
    let mut connections = Connections::new(Arc::clone(&daemon), Listener::Http);
    let mut scrapers = Connections::new(Arc::clone(&daemon), Listener::Metrics);
    {
        let mut stop = std::pin::pin!(stop);
        let mut sweep = interval(SWEEP_EVERY);
        loop {
            tokio::select! {
                biased;
                () = stop.as_mut() => break,
                _ = sweep.tick() => sweep_memory(&daemon),
                () = connections.accept(&listener) => {}
                () = scrapers.accept_if_any(metrics.as_ref()) => {}
            }
        }
    }
    daemon.drain();
    connections.accept_waiting(&listener).await;
    drop(listener);
    connections.finish(drain_timeout).await;
    scrapers.tasks.shutdown().await;
    drop(watch);
    Ok(())
}

fn sweep_memory(daemon: &Daemon) {
    if let Some(memory) = daemon.limiter().as_memory() {
        memory.sweep(SWEEP_PLACES);
    }
}

/// The connections there are.
struct Connections {
    daemon: Arc<Daemon>,
    listener: Listener,
    protocol: Arc<hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor>>,
    places: Arc<Semaphore>,
    /// A place for the next one.
    place: Option<OwnedSemaphorePermit>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Connections {
    fn new(daemon: Arc<Daemon>, listener: Listener) -> Self {
        Connections {
            protocol: Arc::new(connection::protocol()),
            listener,
            places: Arc::new(Semaphore::new(daemon.most_connections(listener))),
            place: None,
            tasks: JoinSet::new(),
            stop: watch::Sender::new(false),
            daemon,
        }
    }

    /// As [`Connections::accept`]; waits for ever where there is no listener.
    async fn accept_if_any(&mut self, listener: Option<&TcpListener>) {
        match listener {
            Some(it) => self.accept(it).await,
            None => std::future::pending().await,
        }
    }

    /// Waits for a place and for a peer that takes it. Nothing is lost if it is dropped.
    async fn accept(&mut self, listener: &TcpListener) {
        while self.tasks.try_join_next().is_some() {}
        if self.place.is_none() {
            self.place = Arc::clone(&self.places).try_acquire_owned().ok();
            if self.listener == Listener::Http {
                self.daemon.set_crowded(self.place.is_none());
            }
        }
        if self.place.is_none() {
            self.place = Arc::clone(&self.places).acquire_owned().await.ok();
        }
        match listener.accept().await {
            Ok((stream, peer)) => self.serve(stream, peer),
            // A peer that left while it waited is its own affair.
            Err(it) if is_of_the_peer(&it) => {}
            Err(it) => {
                tracing::warn!("no connection could be accepted: {it}");
                sleep(REST).await;
            }
        }
    }

    /// Accepts whoever waits already, so that a listener can be closed on nobody.
    async fn accept_waiting(&mut self, listener: &TcpListener) {
        loop {
            self.place =
                self.place.take().or_else(|| Arc::clone(&self.places).try_acquire_owned().ok());
            if self.place.is_none() {
                return;
            }
            tokio::select! {
                biased;
                Ok((stream, peer)) = listener.accept() => self.serve(stream, peer),
                () = std::future::ready(()) => return,
            }
        }
    }

    fn serve(&mut self, stream: TcpStream, peer: SocketAddr) {
        // Answers are small and waited for.
        let _ = stream.set_nodelay(true);
        let (daemon, protocol) = (Arc::clone(&self.daemon), Arc::clone(&self.protocol));
        let (stop, place) = (self.stop.subscribe(), self.place.take());
        let listener = self.listener;
        let connected = Connected::new(Arc::clone(&daemon), listener);
        self.tasks.spawn(async move {
            connection::serve(stream, peer, daemon, listener, protocol, stop).await;
            drop((place, connected));
        });
    }

    /// Lets what is under way finish, and cuts what is not done in time.
    async fn finish(mut self, within: Duration) {
        self.stop.send_replace(true);
        let ended = timeout(within, async { while self.tasks.join_next().await.is_some() {} });
        if ended.await.is_err() {
            let cut = self.tasks.len();
            tracing::warn!("{cut} connections were cut after {within:?}");
            let cut = u64::try_from(cut).unwrap_or(u64::MAX);
            self.daemon.metrics.traffic(self.listener).cuts(cut, Cut::Drained);
        }
        self.tasks.shutdown().await;
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

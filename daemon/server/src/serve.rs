//! The daemon from its beginning to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use tollgate::Limiter;

use crate::config::{Config, Drain};
use crate::connection::Serving;
use crate::daemon::Daemon;
use crate::listener::{Accepting, Listeners};
use crate::reload::{self, OverridesFiles, Reload};
use crate::role::Role;
use crate::store_watch;

/// How often memory of recovered keys is given back, and how much of each shard is looked over.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const SWEEP_PLACES: usize = 64;

/// How the daemon is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// As `drain` says: for its delay it is not ready and accepts still.
    AfterDelay,
    /// Without that delay, for nobody sends to it who would have to learn of it.
    WithoutDelay,
}

/// Serves until `stop` is ready and what was under way is answered, at most the time that the
/// configuration gives it.
///
/// Decisions are made on the tasks of connections; on memory they never wait. What becomes of a
/// store on Redis is logged: when it comes, when it goes, and what about it may surprise later.
///
/// # Errors
/// A listener is not one that can be asked for its address, or accepting at it came to an
/// end; a token or a file of overrides cannot be used; the rules cannot be followed, as
/// [`Rules::check`](crate::rules::Rules::check) says.
pub async fn run(
    config: Config,
    listeners: Listeners,
    limiter: impl Into<Limiter>,
    reload: Option<Reload>,
    stop: impl Future<Output = Stop>,
) -> io::Result<()> {
    let drain = config.drain.clone();
    let xds = config.envoy.xds.clone();
    let mut overrides = OverridesFiles::default();
    let live = overrides.live(&config).map_err(io::Error::other)?;
    let daemon = Arc::new(Daemon::new(live, limiter.into()));
    let mut watch = store_watch::start(&daemon);
    if let Some(reload) = reload {
        watch.spawn(reload::watch(reload, config, overrides, Arc::clone(&daemon)));
    }
    if let Some(options) = xds {
        daemon.discovery.begin(&options.server);
        daemon.review();
        watch.spawn(crate::xds::follow(options, Arc::clone(&daemon)));
    }
    for tls in listeners.tls() {
        watch.spawn(tls.watch());
    }
    let closing = watch::Sender::new(false);
    let mut accepting = JoinSet::new();
    let listeners = [
        (listeners.http, Role::Http),
        (listeners.grpc, Role::Grpc),
        (listeners.resp, Role::Resp),
        (listeners.metrics, Role::Metrics),
        (listeners.debug, Role::Debug),
    ];
    for (listener, role) in listeners {
        let Some(listener) = listener else { continue };
        tracing::debug!(address = %listener.address()?, "listening");
        let serving = Serving::new(Arc::clone(&daemon), role);
        accepting.spawn(Accepting::new(listener, serving).run(closing.subscribe(), drain.timeout));
    }
    serve_until(&daemon, &mut accepting, drained(&daemon, &drain, stop)).await?;
    daemon.close();
    closing.send_replace(true);
    while let Some(ended) = accepting.join_next().await {
        ended.map_err(io::Error::other)?;
    }
    drop(watch);
    Ok(())
}

/// Waits for the word to stop, and then as long as it is to be heard.
async fn drained(daemon: &Daemon, drain: &Drain, stop: impl Future<Output = Stop>) {
    let stop = stop.await;
    daemon.drain();
    if stop == Stop::AfterDelay {
        sleep(drain.delay).await;
    }
}

/// Does what is to be done now and then, as long as every listener is listened at.
async fn serve_until(
    daemon: &Daemon,
    accepting: &mut JoinSet<()>,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut end = std::pin::pin!(end);
    let mut sweep = interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            biased;
            () = end.as_mut() => return Ok(()),
            // None ends before it is told to but by a fault of ours.
            Some(ended) = accepting.join_next() => return ended.map_err(io::Error::other),
            _ = sweep.tick() => sweep_memory(daemon),
        }
    }
}

fn sweep_memory(daemon: &Daemon) {
    if let Some(memory) = daemon.limiter().as_memory() {
        memory.sweep(SWEEP_PLACES);
    }
}

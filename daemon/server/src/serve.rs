//! Running the daemon: start, serve, drain, stop.

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

/// How often memory of recovered keys is freed, and how many slots of each shard a sweep visits.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const SWEEP_PLACES: usize = 64;

/// How to stop the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// For `drain.delay` the daemon reports that it is not ready and still accepts connections.
    AfterDelay,
    /// Without that delay, when no load balancer has to notice first.
    WithoutDelay,
}

/// Serves until `stop` is ready and the requests in flight are answered, at most for
/// `drain.timeout`.
///
/// Decisions are made on the tasks of connections; with the memory store they never wait. Changes
/// in the availability of a Redis store are logged, as are settings of it that may cause surprises.
///
/// # Errors
/// The address of a listener is unknown, or a listener failed; a token or an override file cannot
/// be used; or the rules are invalid, see [`Rules::check`](crate::rules::Rules::check).
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

/// Waits for `stop`, then marks the daemon as not ready and waits for `drain.delay`.
async fn drained(daemon: &Daemon, drain: &Drain, stop: impl Future<Output = Stop>) {
    let stop = stop.await;
    daemon.drain();
    if stop == Stop::AfterDelay {
        sleep(drain.delay).await;
    }
}

/// Sweeps the memory store at an interval, until `end` is ready or a listener fails.
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
            // A listener ends early only if its task panics.
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

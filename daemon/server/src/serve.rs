//! Running the daemon from start to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use tollgate::Limiter;
use tollgate_engine::ListenerKind;

use crate::accept::Accepting;
use crate::reload::{self, OverridesFiles, Reload};
use crate::services::Services;
use crate::serving::Serving;
use crate::store_watch;
use tollgate_config::Config;
use tollgate_transport::{ListenAddress, Listeners};

/// How long the daemon tries to charge the store, before it exits, for what it admitted without it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the daemon tries to write the usage of keys, before it exits.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval of sweeps, which free the memory of recovered keys, and the slots per table and sweep: a million
/// in a minute.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
const SWEEP_SLOTS: usize = 1_000_000 / 60;

/// How the daemon stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Not ready, but still accepting, for the delay of `drain`.
    AfterDelay,
    /// Without that delay: no load balancer has to notice.
    WithoutDelay,
}

/// Serves until `stop` completes and requests in flight are answered, or the drain timeout expires.
///
/// Decisions are made on the tasks of connections; on the memory store they never wait. Changes of
/// the availability of a Redis store are logged, and warnings about its configuration.
///
/// # Errors
/// A listener has no address or stops accepting; other machines reach the dashboard, and there are no
/// tokens; a token or a file of overrides cannot be used; the
/// rules are invalid, as in [`Rules::check`](tollgate_rules::Rules::check).
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
    let active = overrides.build(&config).map_err(io::Error::other)?;
    let services = Arc::new(Services::new(active, limiter.into()));
    services.report_warnings(&config);
    services.admin.set_effective_yaml(config.effective_yaml.clone());
    let mut watch = store_watch::start(&services);
    let tracking = Arc::clone(&services.engine);
    watch.spawn(async move { tracking.insight().run().await });
    if let Some(reload) = reload {
        watch.spawn(reload::watch(reload, config, overrides, Arc::clone(&services)));
    }
    if let Some(options) = xds {
        services.envoy.discovery.begin(&options.server);
        services.update_health();
        let (engine, discovery) = (&services.engine, &services.envoy.discovery);
        let (engine, discovery) = (Arc::clone(engine), Arc::clone(discovery));
        let updated = Arc::clone(&services);
        let on_update = move || updated.update_health();
        watch.spawn(tollgate_envoy::xds::follow(options, engine, discovery, on_update));
    }
    for tls in listeners.tls() {
        watch.spawn(tls.watch());
    }
    let closing = watch::Sender::new(false);
    let mut accepting = JoinSet::new();
    let listeners = [
        (listeners.http, ListenerKind::Http),
        (listeners.grpc, ListenerKind::Grpc),
        (listeners.resp, ListenerKind::Resp),
        (listeners.metrics, ListenerKind::Metrics),
        (listeners.debug, ListenerKind::Debug),
        (listeners.admin, ListenerKind::Admin),
    ];
    for (listener, kind) in listeners {
        let Some(listener) = listener else { continue };
        let address = listener.address()?;
        tracing::debug!(%address, "listening");
        if kind == ListenerKind::Admin {
            check_admin(&services, &address)?;
            watch.spawn(Arc::clone(&services.admin).sample());
        }
        let serving = Serving::new(Arc::clone(&services), kind, &address);
        accepting.spawn(Accepting::new(listener, serving).run(closing.subscribe(), drain.timeout));
    }
    let drained = async {
        let stop = stop.await;
        services.drain();
        if stop == Stop::AfterDelay {
            sleep(drain.delay).await;
        }
    };
    serve_until(&services, &mut accepting, drained).await?;
    services.lifecycle.close();
    services.admin.close();
    closing.send_replace(true);
    while let Some(ended) = accepting.join_next().await {
        ended.map_err(io::Error::other)?;
    }
    drop(watch);
    leave(&services).await;
    Ok(())
}

/// Writes what the store has not got yet, before the daemon exits.
async fn leave(services: &Services) {
    let unwritten = services.engine.insight().close(CLOSE_TIMEOUT).await;
    if unwritten > 0 {
        tracing::warn!(decisions = unwritten, "usage of keys not written before the exit");
    }
    if let Err(error) = services.engine.limiter().leave(LEAVE_TIMEOUT).await {
        tracing::warn!("did not leave the store in order: {error}");
    }
}

/// Requires tokens for a dashboard that other machines reach, whatever built the configuration.
fn check_admin(services: &Services, address: &ListenAddress) -> io::Result<()> {
    if address.is_local() || !services.engine.active().access.is_open() {
        return Ok(());
    }
    let message = format!(
        "other machines reach {address}, where the dashboard requires a token; add one with the \
         scope read to tokens, or use a loopback address or a Unix socket"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Sweeps memory until `end` completes, or a listener fails.
async fn serve_until(
    services: &Services,
    accepting: &mut JoinSet<()>,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut end = std::pin::pin!(end);
    let mut sweep = interval(SWEEP_INTERVAL);
    loop {
        tokio::select! {
            biased;
            () = end.as_mut() => return Ok(()),
            // A listener ends early only by a panic.
            Some(ended) = accepting.join_next() => return ended.map_err(io::Error::other),
            _ = sweep.tick() => {
                if let Some(memory) = services.engine.limiter().as_memory() {
                    memory.sweep(SWEEP_SLOTS);
                }
            }
        }
    }
}

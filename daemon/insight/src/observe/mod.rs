//! Observes the counters of an application that counts by itself in Redis.
//!
//! A task per server reads the counters that its notifications name, and adds what they have risen by to
//! the same records that `track` keeps. A lease per server decides which of several observers reads it.
//! A record also has the state of the observer: the value of each counter up to which it was counted. A
//! write states the state that it continues from, and the server rejects it if the record has another
//! one. So no increment is counted twice, even while two observers believe that they have the lease.

mod counter;
mod events;
mod flags;
mod key;
mod lease;
mod node;
mod pattern;
mod report;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tollgate::random_id;
use tollgate_config::Track;
use tollgate_redis::{Primary, RedisStore};
use tollgate_state::{Failure, StoreError};

pub use pattern::{CounterPattern, PatternError};
pub use report::ObserveReport;

use crate::log_outage;
use crate::tracked::Tracked;
use lease::{Lease, LeaseRequest, renew};
use node::Node;
use report::SharedReport;

/// How often leases are renewed and the primaries are queried.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);
/// How long the tasks may take to write before the process exits.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of an observer.
#[derive(Clone, Debug)]
pub struct ObserveOptions {
    /// The names of the counters.
    pub pattern: CounterPattern,
    /// Whether to write nothing beside the counters.
    pub is_read_only: bool,
}

/// What all tasks share.
#[derive(Debug)]
struct Shared {
    store: RedisStore,
    tracked: Tracked,
    pattern: CounterPattern,
    is_read_only: bool,
    /// Distinguishes this process from others.
    observer: String,
    report: SharedReport,
    /// Notified when notifications of a server begin to arrive, which the store then records.
    began: Notify,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// The key of a counter; absent for other names, such as Tollgate's own.
    fn key_of<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let own = name.strip_prefix(self.store.namespace().as_bytes());
        if own.is_some_and(|rest| rest.starts_with(b":")) {
            return None;
        }
        self.pattern.key(name).filter(|key| key.len() <= crate::MAX_KEY_BYTES)
    }
}

/// A server and its task.
#[derive(Debug)]
struct NodeTask {
    lease: watch::Sender<Option<Lease>>,
    is_observed: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// Observes counters.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    nodes: BTreeMap<Primary, NodeTask>,
    /// Tasks of former primaries, until they have written.
    former_tasks: Vec<JoinHandle<()>>,
    is_failing: bool,
}

impl Observer {
    /// Checks the servers of a store. Records are those of a policy that tracks its usage.
    ///
    /// # Errors
    /// The store is unavailable, the pattern does not suit a cluster, or a server does not send the
    /// notifications.
    pub async fn start(
        store: RedisStore,
        policy: &str,
        track: &Track,
        options: ObserveOptions,
    ) -> Result<Self, ObserveError> {
        store.ready().await.map_err(ObserveError::Store)?;
        let unavailable = |failure: Failure| ObserveError::Store(failure.into());
        let primaries = store.primaries().await.map_err(unavailable)?;
        let ObserveOptions { pattern, is_read_only } = options;
        if store.is_cluster() && !pattern.has_slot_per_key() {
            return Err(ObserveError::Pattern(pattern));
        }
        check_notifications(&store, &primaries, &pattern).await?;
        let shared = Shared {
            store,
            tracked: Tracked::new(0, policy, track),
            pattern,
            is_read_only,
            observer: random_id().to_string(),
            report: SharedReport::default(),
            began: Notify::new(),
            stop: watch::Sender::new(false),
        };
        let shared = Arc::new(shared);
        let mut observer = Observer {
            shared,
            nodes: BTreeMap::new(),
            former_tasks: Vec::new(),
            is_failing: false,
        };
        observer.set_primaries(primaries);
        observer.renew().await.map_err(unavailable)?;
        for (primary, node) in &observer.nodes {
            if node.lease.borrow().is_none() {
                tracing::info!("another observer has {primary}, standing by");
            }
        }
        Ok(observer)
    }

    /// Observes until `stop` completes; then writes what was counted, and releases the leases.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> ObserveReport {
        let mut ticks = interval(RENEW_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shared = Arc::clone(&self.shared);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = ticks.tick() => {}
                () = shared.began.notified() => {}
            }
            let result = self.refresh().await;
            log_outage(&mut self.is_failing, &result, "leases of servers");
        }
        self.finish().await
    }

    async fn refresh(&mut self) -> Result<(), Failure> {
        // Leases are renewed even if the primaries are unknown.
        let shared = Arc::clone(&self.shared);
        let (primaries, renewed) = tokio::join!(shared.store.primaries(), self.renew());
        let has_new_primary = self.set_primaries(primaries?);
        if has_new_primary { self.renew().await } else { renewed }
    }

    /// Starts and ends the tasks of servers. Returns whether it has started one.
    fn set_primaries(&mut self, primaries: Vec<Primary>) -> bool {
        let gone: Vec<_> =
            self.nodes.keys().filter(|node| !primaries.contains(node)).cloned().collect();
        for primary in gone {
            if let Some(NodeTask { task, .. }) = self.nodes.remove(&primary) {
                tracing::info!("{primary} is no primary any more");
                self.former_tasks.push(task);
            }
        }
        self.former_tasks.retain(|task| !task.is_finished());
        let mut has_new_primary = false;
        for primary in primaries {
            self.nodes.entry(primary).or_insert_with_key(|primary| {
                has_new_primary = true;
                let (lease, receiver) = watch::channel(None);
                let is_observed = Arc::new(AtomicBool::new(false));
                let node = Node {
                    shared: Arc::clone(&self.shared),
                    primary: primary.clone(),
                    lease: receiver,
                    is_observed: Arc::clone(&is_observed),
                };
                NodeTask { lease, is_observed, task: tokio::spawn(node.run()) }
            });
        }
        has_new_primary
    }

    /// The name of a server in the record of the leases. Without a cluster, a server that replaces
    /// another one has the same name.
    fn name(&self, primary: &Primary) -> String {
        match self.shared.store.is_cluster() {
            false => "primary".to_owned(),
            true => primary.to_string(),
        }
    }

    async fn renew(&self) -> Result<(), Failure> {
        let request = |node: &NodeTask| match node.is_observed.load(Ordering::Relaxed) {
            true => LeaseRequest::Observed,
            false => LeaseRequest::Hold,
        };
        let requests: Vec<_> =
            self.nodes.iter().map(|(primary, node)| (self.name(primary), request(node))).collect();
        let leases = self.renew_as(&requests).await?;
        for (node, lease) in self.nodes.values().zip(leases) {
            node.lease.send_replace(lease);
        }
        Ok(())
    }

    async fn renew_as(
        &self,
        requests: &[(String, LeaseRequest)],
    ) -> Result<Vec<Option<Lease>>, Failure> {
        let Shared { store, tracked, observer, .. } = &*self.shared;
        renew(store, tracked, observer, requests).await
    }

    async fn finish(self) -> ObserveReport {
        // The time until which each server was observed.
        let renewed = self.renew().await;
        self.shared.stop.send_replace(true);
        let names: Vec<_> = self.nodes.keys().map(|primary| self.name(primary)).collect();
        let release: Vec<_> = names.into_iter().map(|name| (name, LeaseRequest::Release)).collect();
        let Observer { shared, nodes, former_tasks, .. } = self;
        let deadline = Instant::now() + STOP_TIMEOUT;
        for task in nodes.into_values().map(|node| node.task).chain(former_tasks) {
            match timeout_at(deadline, task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!("an observation failed: {error}"),
                Err(_) => tracing::warn!("the last totals were not written in time"),
            }
        }
        let Shared { store, tracked, observer, .. } = &*shared;
        if let Err(failure) = renew(store, tracked, observer, &release).await {
            tracing::warn!("leases not released, so they end by themselves: {failure}");
        } else if let Err(failure) = renewed {
            tracing::warn!("the end of the observation was not recorded: {failure}");
        }
        *shared.report.lock()
    }
}

/// Fails unless each server sends the notifications, or does not permit to find out.
async fn check_notifications(
    store: &RedisStore,
    primaries: &[Primary],
    pattern: &CounterPattern,
) -> Result<(), ObserveError> {
    let unavailable = |failure: Failure| ObserveError::Store(failure.into());
    let mut missing = Vec::new();
    for primary in primaries {
        let subscription = store.subscribe(primary, &pattern.glob(), |_| ()).await;
        let flags = subscription.map_err(unavailable)?.notification_flags().await;
        match flags.map_err(unavailable)? {
            Some(flags) => {
                missing.extend(flags::missing(&flags).map(|missing| missing.message(primary)));
            }
            None => tracing::warn!(
                "the user may not read notify-keyspace-events of {primary}; it must have K, $ and x"
            ),
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(ObserveError::Notifications(missing)),
    }
}

/// Why an observer cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObserveError {
    /// The store is unavailable or rejects a command.
    Store(StoreError),
    /// The counters of a key may be on several servers of the cluster.
    Pattern(CounterPattern),
    /// Servers do not send the needed notifications: a message for each.
    Notifications(Vec<String>),
}

impl fmt::Display for ObserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObserveError::Store(error) => error.fmt(f),
            ObserveError::Pattern(pattern) => write!(
                f,
                "on a cluster, the counters of a key must have one slot; with {pattern}, they may have \
                 several: the application needs names with the key in braces, such as {{KEY}}:*"
            ),
            ObserveError::Notifications(missing) => f.write_str(&missing.join("\n")),
        }
    }
}

impl std::error::Error for ObserveError {}

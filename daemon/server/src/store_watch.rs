//! Logging the availability of a Redis store and of its nodes, and the warnings of its servers.

mod nodes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::{Failure, NodeStats, RedisStore, Warning};

use crate::services::Services;
use nodes::NodeWatch;
pub(crate) use nodes::describe_outage;

/// The interval of probes, and so the shortest time between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watches until the returned set is dropped. The memory store needs no watch.
pub(crate) fn start(services: &Arc<Services>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if let Some(store) = services.engine.limiter().as_redis() {
        tasks.spawn(watch(Arc::clone(services), store.clone()));
    }
    tasks
}

async fn watch(services: Arc<Services>, store: RedisStore) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut watched, mut password) = (Watched::default(), PasswordWatch::default());
    let (mut nodes, mut warnings) = (NodeWatch::default(), WarningWatch::default());
    loop {
        ticks.tick().await;
        let ready = store.ready().await.map_err(|error| error.to_string());
        let stats = services.engine.limiter().stats();
        let degraded = stats.degraded_allowed + stats.degraded_denied;
        let event = watched.update(ready, degraded);
        services.engine.set_store_reachable(watched.known == Known::Reachable);
        services.update_health();
        match event {
            Some(Event::Connected) => tracing::info!("store available"),
            Some(Event::Unavailable(error)) => tracing::error!("store unavailable: {error}"),
            Some(Event::NotResponding) => match stats.last_failure {
                Some(error) => tracing::error!("store connected but not responding: {error}"),
                None => tracing::error!("store connected but not responding"),
            },
            Some(Event::Recovered(checks)) => {
                tracing::info!("store available again; {checks} checks were decided without it");
            }
            None => {}
        }
        password.log_changes(&store);
        let current = store.nodes();
        nodes.update(&current).iter().for_each(nodes::Event::log);
        if warnings.is_due(&current) {
            for warning in warnings.update(store.warnings().await) {
                tracing::warn!("{warning}");
            }
        }
    }
}

/// The replacement of passwords at the last probe.
#[derive(Debug, Default)]
struct PasswordWatch {
    replaced: u64,
    failure: Option<Failure>,
}

impl PasswordWatch {
    fn log_changes(&mut self, store: &RedisStore) {
        let (replaced, failure) = (store.stats().replaced_passwords, store.password_failure());
        if replaced > self.replaced {
            tracing::info!("store password replaced");
        }
        if let Some(failure) = failure.as_ref().filter(|_| self.failure != failure) {
            tracing::warn!("keeping the previous store password: {failure}");
        }
        *self = PasswordWatch { replaced, failure };
    }
}

/// The number of probes between two checks of the servers.
const PROBES_PER_CHECK: u32 = 10;

/// When the configuration of the servers is checked, and which warnings were logged.
#[derive(Debug, Default)]
struct WarningWatch {
    /// The servers that are up, each with the number of its outages: after a failover or a restart,
    /// the configuration may be another.
    servers: Vec<(Box<str>, u64)>,
    probes: u32,
    known: BTreeSet<Warning>,
}

impl WarningWatch {
    fn is_due(&mut self, nodes: &[NodeStats]) -> bool {
        let up = nodes.iter().filter(|node| node.is_up());
        let servers: Vec<_> = up.map(|node| (node.address.clone(), node.outages)).collect();
        self.probes += 1;
        if servers == self.servers && self.probes < PROBES_PER_CHECK {
            return false;
        }
        self.probes = 0;
        self.servers = servers;
        true
    }

    /// Returns the warnings that are new.
    fn update(&mut self, found: Vec<Warning>) -> Vec<Warning> {
        let found: BTreeSet<_> = found.into_iter().collect();
        let new = found.difference(&self.known).cloned().collect();
        self.known = found;
        new
    }
}

/// What is known about the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    Reachable,
    Unavailable {
        /// The checks that were decided without the store before.
        since: u64,
    },
}

/// A change of availability.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Connected,
    Unavailable(String),
    /// It is connected, and misses deadlines.
    NotResponding,
    /// After this number of checks that were decided without it.
    Recovered(u64),
}

/// The store at the last probe.
#[derive(Clone, Debug, Default)]
struct Watched {
    known: Known,
    /// The checks that were decided without the store.
    degraded: u64,
}

impl Watched {
    fn update(&mut self, ready: Result<(), String>, degraded: u64) -> Option<Event> {
        let before = std::mem::replace(&mut self.degraded, degraded);
        let misses_deadlines = degraded > before;
        let (known, event) = match (self.known, ready) {
            (Known::Unavailable { since }, Ok(())) if !misses_deadlines => {
                (Known::Reachable, Event::Recovered(degraded.saturating_sub(since)))
            }
            (Known::Unavailable { .. }, _) => return None,
            (_, Err(error)) => (Known::Unavailable { since: before }, Event::Unavailable(error)),
            (_, Ok(())) if misses_deadlines => {
                (Known::Unavailable { since: before }, Event::NotResponding)
            }
            (Known::Nothing, Ok(())) => (Known::Reachable, Event::Connected),
            (Known::Reachable, Ok(())) => return None,
        };
        self.known = known;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_checked_when_they_change_and_regularly() {
        let node = |connections, outages| {
            let mut node = NodeStats::default();
            node.connections = connections;
            node.outages = outages;
            node
        };
        let mut watch = WarningWatch::default();
        assert!(watch.is_due(&[node(2, 0)]));
        assert!(!watch.is_due(&[node(1, 0)]));
        assert!(watch.is_due(&[node(1, 1)]));
        let due = (0..2 * PROBES_PER_CHECK).filter(|_| watch.is_due(&[node(1, 1)])).count();
        assert_eq!(due, 2);
    }

    #[test]
    fn each_change_of_availability_is_reported_once() {
        let unavailable = || Err("no route".to_owned());
        let mut watched = Watched::default();
        for (ready, degraded, event) in [
            (Ok(()), 0, Some(Event::Connected)),
            (Ok(()), 0, None),
            (unavailable(), 3, Some(Event::Unavailable("no route".to_owned()))),
            (unavailable(), 9, None),
            // Connected again, but still missing deadlines.
            (Ok(()), 12, None),
            (Ok(()), 12, Some(Event::Recovered(12))),
            (Ok(()), 13, Some(Event::NotResponding)),
            (Ok(()), 13, Some(Event::Recovered(1))),
            (Ok(()), 13, None),
        ] {
            assert_eq!(watched.update(ready.clone(), degraded), event, "{ready:?} {degraded}");
        }
        let mut never_reached = Watched::default();
        assert_eq!(
            never_reached.update(unavailable(), 0),
            Some(Event::Unavailable("no route".to_owned()))
        );
        assert_eq!(never_reached.update(Ok(()), 0), Some(Event::Recovered(0)));
    }
}

//! Logging the availability of a Redis store and of its nodes, and the warnings of its servers.

mod nodes;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::{Failure, FailureKind, LimiterStats, NodeStats, RedisStore, Warning};

use crate::services::Services;
use nodes::NodeWatch;
pub(crate) use nodes::{describe_breaker, describe_outage};
use tollgate_engine::ChecksWithoutStore;

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
    let mut members = MembersWatch::default();
    let (mut nodes, mut warnings) = (NodeWatch::default(), WarningWatch::default());
    loop {
        ticks.tick().await;
        let ping = store.ping().await.map_err(|error| error.to_string());
        let stats = services.engine.limiter().stats();
        members.log_changes(&stats);
        let failure = stats.last_failure.map(|failure| failure.to_string()).unwrap_or_default();
        let probe = Probe {
            ping,
            failed: stats.errors.values().sum(),
            failure,
            checks: services.engine.counters.without_store(),
        };
        let event = watched.update(probe);
        services.engine.set_store_state(watched.problem());
        services.update_health();
        // An outage and its end have the same level, so that a log has both or neither.
        match event {
            Some(Event::Connected) => tracing::info!("store available"),
            Some(
                event @ (Event::Unavailable(_) | Event::NotResponding(_) | Event::Recovered(_)),
            ) => {
                tracing::error!("{event}");
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

/// The heartbeat of this process at the last probe.
#[derive(Debug, Default)]
struct MembersWatch {
    failure: Option<Failure>,
}

impl MembersWatch {
    fn log_changes(&mut self, stats: &LimiterStats) {
        let failure = &stats.membership_failure;
        if self.failure.as_ref().map(|failure| failure.kind)
            == failure.as_ref().map(|failure| failure.kind)
        {
            return;
        }
        match failure {
            // The line about the store reports an outage.
            Some(failure) if is_outage(failure.kind) => return,
            Some(failure) => tracing::warn!(
                "heartbeat rejected, so this process may have no share of the limits while the \
                 store is unavailable: {failure}; permit HSET, HGETALL, HDEL, PEXPIREAT and TIME"
            ),
            None => tracing::info!("heartbeat accepted"),
        }
        self.failure.clone_from(failure);
    }
}

fn is_outage(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Unreachable | FailureKind::Deadline | FailureKind::ConnectionLost)
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

/// The result of a probe.
#[derive(Clone, Debug)]
struct Probe {
    ping: Result<(), String>,
    /// The requests that the store did not answer in time.
    failed: u64,
    /// The last failure of a request.
    failure: String,
    checks: ChecksWithoutStore,
}

/// What is known about the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    Reachable,
    Unavailable {
        problem: Arc<str>,
        /// The checks without the store before.
        before: ChecksWithoutStore,
    },
}

/// A change of availability.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Connected,
    Unavailable(Arc<str>),
    /// It is connected, and misses deadlines.
    NotResponding(Arc<str>),
    /// After these checks without it.
    Recovered(ChecksWithoutStore),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Connected => f.write_str("store available"),
            Event::Unavailable(problem) => write!(f, "store unavailable: {problem}"),
            Event::NotResponding(problem) => {
                write!(f, "store connected but not responding: {problem}")
            }
            Event::Recovered(ChecksWithoutStore { decided, failed }) => write!(
                f,
                "store available again; without it, {decided} checks were decided by \
                 on_store_error and {failed} ended in an error"
            ),
        }
    }
}

/// The store at the last probe.
#[derive(Clone, Debug, Default)]
struct Watched {
    known: Known,
    failed: u64,
    checks: ChecksWithoutStore,
}

impl Watched {
    fn update(&mut self, probe: Probe) -> Option<Event> {
        let before = std::mem::replace(&mut self.checks, probe.checks);
        let failed = std::mem::replace(&mut self.failed, probe.failed);
        let misses_deadlines = probe.failed > failed;
        let (known, event) = match (&self.known, probe.ping) {
            (Known::Unavailable { before, .. }, Ok(())) if !misses_deadlines => {
                let checks = ChecksWithoutStore {
                    decided: probe.checks.decided.saturating_sub(before.decided),
                    failed: probe.checks.failed.saturating_sub(before.failed),
                };
                (Known::Reachable, Event::Recovered(checks))
            }
            (Known::Unavailable { .. }, _) => return None,
            (_, Err(error)) => {
                let problem: Arc<str> = error.into();
                (
                    Known::Unavailable { problem: Arc::clone(&problem), before },
                    Event::Unavailable(problem),
                )
            }
            (_, Ok(())) if misses_deadlines => {
                let problem: Arc<str> = probe.failure.into();
                (
                    Known::Unavailable { problem: Arc::clone(&problem), before },
                    Event::NotResponding(problem),
                )
            }
            (Known::Nothing, Ok(())) => (Known::Reachable, Event::Connected),
            (Known::Reachable, Ok(())) => return None,
        };
        self.known = known;
        Some(event)
    }

    /// Why the store is unavailable, if it is.
    fn problem(&self) -> Result<(), Arc<str>> {
        match &self.known {
            Known::Unavailable { problem, .. } => Err(Arc::clone(problem)),
            Known::Nothing | Known::Reachable => Ok(()),
        }
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
        let probe = |is_up: bool, decided, failed| Probe {
            ping: if is_up { Ok(()) } else { Err("no route".to_owned()) },
            failed: decided + failed,
            failure: "too late".to_owned(),
            checks: ChecksWithoutStore { decided, failed },
        };
        let recovered = |decided, failed| Event::Recovered(ChecksWithoutStore { decided, failed });
        let mut watched = Watched::default();
        for (is_up, decided, failed, event) in [
            (true, 0, 0, Some(Event::Connected)),
            (true, 0, 0, None),
            (false, 3, 1, Some(Event::Unavailable("no route".into()))),
            (false, 9, 1, None),
            // Connected again, but still missing deadlines.
            (true, 12, 5, None),
            (true, 12, 5, Some(recovered(12, 5))),
            (true, 12, 6, Some(Event::NotResponding("too late".into()))),
            (true, 12, 6, Some(recovered(0, 1))),
            (true, 12, 6, None),
        ] {
            let found = watched.update(probe(is_up, decided, failed));
            assert_eq!(found, event, "{is_up} {decided} {failed}");
            assert_eq!(watched.problem().is_ok(), watched.known == Known::Reachable);
        }
        let mut never_reached = Watched::default();
        let event = Event::Unavailable("no route".into());
        assert_eq!(never_reached.update(probe(false, 0, 0)), Some(event));
        assert_eq!(never_reached.problem(), Err("no route".into()));
        assert_eq!(never_reached.update(probe(true, 0, 0)), Some(recovered(0, 0)));
    }
}

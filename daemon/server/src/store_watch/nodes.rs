//! Logging the availability of each node of a Redis store.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tollgate::{BreakerState, NodeStats};

/// The nodes at the last probe.
#[derive(Debug, Default)]
pub(super) struct NodeWatch(Option<BTreeMap<Box<str>, Known>>);

/// What is known about a node.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    outages: u64,
    is_unavailable: bool,
    /// How often the breaker had opened, and whether it was closed again.
    opened: u64,
    is_breaker_open: bool,
}

/// A change of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Added(Box<str>),
    Removed(Box<str>),
    /// The address and the reason.
    Unavailable(String),
    /// It is available again, after this time.
    Recovered(Box<str>, Duration),
    /// It was unavailable for this time between two probes.
    Interrupted(Box<str>, Duration, String),
    /// Its circuit breaker opened: the address and the reason.
    BreakerOpened(String),
    /// The breaker is closed again, after this time.
    BreakerClosed(Box<str>, Duration),
    /// The breaker was open for this time between two probes.
    BreakerTripped(Box<str>, Duration, Box<str>),
}

impl NodeWatch {
    /// Returns the changes since the last probe.
    pub(super) fn update(&mut self, nodes: &[NodeStats]) -> Vec<Event> {
        let mut events = Vec::new();
        let is_first = self.0.is_none();
        let mut known = self.0.take().unwrap_or_default();
        let mut current = BTreeMap::new();
        for node in nodes {
            let before = known.remove(&node.address);
            if before.is_none() && !is_first {
                events.push(Event::Added(node.address.clone()));
            }
            let before = before.unwrap_or_default();
            events.extend(change(node, before));
            events.extend(breaker_change(node, before));
            let known = Known {
                outages: node.outages,
                is_unavailable: node.is_unavailable(),
                opened: node.breaker.opened,
                is_breaker_open: node.breaker.state != BreakerState::Closed,
            };
            current.insert(node.address.clone(), known);
        }
        events.extend(known.into_keys().map(Event::Removed));
        self.0 = Some(current);
        events
    }
}

/// Returns the change of a node that is still used.
fn change(node: &NodeStats, before: Known) -> Option<Event> {
    let length = node.last_outage.unwrap_or_default();
    let address = || node.address.clone();
    match (before.is_unavailable, node.is_up()) {
        (true, true) => Some(Event::Recovered(address(), length)),
        (false, false) if node.is_unavailable() => Some(Event::Unavailable(describe_outage(node))),
        (false, true) if node.outages > before.outages => {
            Some(Event::Interrupted(address(), length, cause(node)))
        }
        _ => None,
    }
}

/// Returns the change of the breaker of a node that is still used.
fn breaker_change(node: &NodeStats, before: Known) -> Option<Event> {
    let breaker = &node.breaker;
    let length = breaker.last_opening.unwrap_or_default();
    let address = || node.address.clone();
    match (before.is_breaker_open, breaker.state == BreakerState::Closed) {
        (true, true) => Some(Event::BreakerClosed(address(), length)),
        (false, false) => Some(Event::BreakerOpened(describe_breaker(node))),
        (false, true) if breaker.opened > before.opened => {
            Some(Event::BreakerTripped(address(), length, breaker.cause.clone()))
        }
        _ => None,
    }
}

/// The address of a node, and why its breaker opened.
pub(crate) fn describe_breaker(node: &NodeStats) -> String {
    format!("{}: {}", node.address, node.breaker.cause)
}

/// The address of a node, and the cause of its last outage.
pub(crate) fn describe_outage(node: &NodeStats) -> String {
    format!("{}: {}", node.address, cause(node))
}

fn cause(node: &NodeStats) -> String {
    node.failure.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

impl Event {
    pub(super) fn log(&self) {
        match self {
            Event::Added(_) | Event::Removed(_) => tracing::info!("{self}"),
            Event::Unavailable(_)
            | Event::Interrupted(..)
            | Event::Recovered(..)
            | Event::BreakerOpened(_)
            | Event::BreakerClosed(..)
            | Event::BreakerTripped(..) => tracing::warn!("{self}"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Added(address) => write!(f, "store node added: {address}"),
            Event::Removed(address) => write!(f, "store node removed: {address}"),
            Event::Unavailable(outage) => write!(f, "store node unavailable: {outage}"),
            Event::Recovered(address, length) => {
                write!(f, "store node available again: {address}, after {length:.1?}")
            }
            Event::Interrupted(address, length, cause) => {
                write!(f, "store node interrupted: {address}, for {length:.1?}: {cause}")
            }
            Event::BreakerOpened(cause) => write!(f, "store node breaker opened: {cause}"),
            Event::BreakerClosed(address, length) => {
                write!(f, "store node breaker closed: {address}, after {length:.1?}")
            }
            Event::BreakerTripped(address, length, cause) => {
                write!(f, "store node breaker tripped: {address}, for {length:.1?}: {cause}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::{Failure, FailureKind};

    fn node(address: &str, connections: u32, outages: u64) -> NodeStats {
        let mut node = NodeStats::default();
        node.address = address.into();
        node.connections = connections;
        node.outages = outages;
        node.last_outage = (outages > 0).then(|| Duration::from_millis(2_340));
        node.failure = (outages > 0).then(|| Failure::new(FailureKind::ReadOnly, "demoted"));
        node
    }

    #[test]
    fn each_change_of_a_node_is_reported_once() {
        let mut watch = NodeWatch::default();
        for (nodes, expected) in [
            (vec![node("a:1", 0, 0)], &[][..]),
            (vec![node("a:1", 2, 0), node("b:1", 0, 0)], &["store node added: b:1"]),
            (
                vec![node("a:1", 0, 1), node("b:1", 1, 0)],
                &["store node unavailable: a:1: the server"],
            ),
            // An attempt that succeeds for a moment is no change.
            (vec![node("a:1", 0, 2), node("b:1", 2, 0)], &[]),
            (
                vec![node("a:1", 1, 2), node("b:1", 2, 1)],
                &[
                    "store node available again: a:1, after 2.3s",
                    "store node interrupted: b:1, for",
                ],
            ),
            (vec![node("b:1", 2, 1)], &["store node removed: a:1"]),
            (vec![node("b:1", 2, 1)], &[]),
        ] {
            let events: Vec<_> = watch.update(&nodes).iter().map(Event::to_string).collect();
            assert_eq!(events.len(), expected.len(), "{events:?}");
            for (event, expected) in events.iter().zip(expected) {
                assert!(event.starts_with(expected), "{event}");
            }
        }
    }

    #[test]
    fn each_change_of_a_breaker_is_reported_once() {
        let mut watch = NodeWatch::default();
        for (opened, state, expected) in [
            (0, BreakerState::Closed, None),
            (1, BreakerState::Open, Some("store node breaker opened: a:1: no reply within 30ms")),
            (1, BreakerState::HalfOpen, None),
            (1, BreakerState::Closing, None),
            (1, BreakerState::Closed, Some("store node breaker closed: a:1, after 1.2s")),
            (
                2,
                BreakerState::Closed,
                Some("store node breaker tripped: a:1, for 1.2s: no reply within 30ms"),
            ),
            (2, BreakerState::Closed, None),
        ] {
            let mut node = node("a:1", 2, 0);
            (node.breaker.opened, node.breaker.state) = (opened, state);
            node.breaker.cause = "no reply within 30ms".into();
            node.breaker.last_opening = Some(Duration::from_millis(1_230));
            let events: Vec<_> = watch.update(&[node]).iter().map(Event::to_string).collect();
            assert_eq!(events, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_unavailable_node_is_reported_at_the_start() {
        let events = NodeWatch::default().update(&[node("a:1", 0, 1), node("b:1", 1, 1)]);
        let expected = [Event::Unavailable(describe_outage(&node("a:1", 0, 1)))];
        assert_eq!(events[..1], expected);
        assert!(matches!(&events[1..], [Event::Interrupted(..)]), "{events:?}");
    }
}

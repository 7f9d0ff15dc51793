//! What is known about a cluster, and which of its nodes are needed: a state machine without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::schedule::Schedule;
use super::slot_map::SlotMap;
use crate::url::Address;

/// How long a node that only redirections name is kept.
const KEEP_IMPORTING: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct TopologyState {
    /// The nodes in the URL.
    seeds: Box<[Address]>,
    pub(super) schedule: Schedule,
    slots: Option<SlotMap>,
    /// A map that contradicts `slots`, and the node that reported it.
    unconfirmed: Option<(Address, SlotMap)>,
    /// Nodes that import a slot, and until when they are kept. They may have no slot yet.
    importing: BTreeMap<Address, Instant>,
    last_queried: Option<Address>,
}

impl TopologyState {
    pub(super) fn new(seeds: &[Address], schedule: Schedule) -> Self {
        TopologyState {
            seeds: seeds.into(),
            schedule,
            slots: None,
            unconfirmed: None,
            importing: BTreeMap::new(),
            last_queried: None,
        }
    }

    pub(super) fn slots(&self) -> Option<&SlotMap> {
        self.slots.as_ref()
    }

    /// Records that a node redirected requests on a slot for good.
    pub(super) fn record_moved(&mut self, slot: u16, to: &Address) {
        if let Some(slots) = &mut self.slots {
            slots.move_slot(slot, to);
        }
    }

    /// Records that a node redirected requests to a node that is importing their slot.
    pub(super) fn record_asked(&mut self, to: &Address, now: Instant) {
        self.importing.insert(to.clone(), now + KEEP_IMPORTING);
    }

    /// Returns the connected nodes to query, best first: in turn, and not the one whose report is to
    /// be confirmed.
    pub(super) fn nodes_to_query(&mut self, connected: &BTreeSet<Address>) -> Vec<Address> {
        let unconfirmed = self.unconfirmed.as_ref().map(|(speaker, _)| speaker);
        let is_behind = |node: &&Address| Some(*node) > self.last_queried.as_ref();
        let (next, first): (Vec<&Address>, _) = connected.iter().partition(is_behind);
        let mut nodes: Vec<Address> = next.into_iter().chain(first).cloned().collect();
        nodes.sort_by_key(|node| Some(node) == unconfirmed);
        if let Some(first) = nodes.first() {
            self.last_queried = Some(first.clone());
        }
        nodes
    }

    /// Records the map that a node reported. Returns whether another node must confirm it.
    pub(super) fn record_map(&mut self, speaker: &Address, map: SlotMap) -> bool {
        let Some(slots) = &mut self.slots else {
            self.slots = Some(map);
            return false;
        };
        let other = self.unconfirmed.take().filter(|(first, _)| first != speaker);
        let contradicts = slots.merge(map.clone(), other.as_ref().map(|(_, map)| map));
        if contradicts {
            self.unconfirmed = Some((speaker.clone(), map));
        }
        contradicts
    }

    /// Returns the nodes to keep connections to. Without any connection, the nodes in the URL may
    /// know a cluster whose nodes have all changed.
    pub(super) fn nodes_to_keep(&mut self, is_connected: bool, now: Instant) -> BTreeSet<Address> {
        self.importing.retain(|_, until| *until > now);
        let mut nodes: BTreeSet<Address> = self.importing.keys().cloned().collect();
        if let Some(slots) = &self.slots {
            nodes.extend(slots.nodes.iter().cloned());
        }
        if self.slots.is_none() || !is_connected {
            nodes.extend(self.seeds.iter().cloned());
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(port: u16) -> Address {
        Address::tcp("h", port)
    }

    fn nodes(ports: &[u16]) -> BTreeSet<Address> {
        ports.iter().map(|port| node(*port)).collect()
    }

    fn state() -> (TopologyState, Instant) {
        let now = Instant::now();
        let schedule = Schedule::new(Duration::from_secs(30), now);
        (TopologyState::new(&[node(1)], schedule), now)
    }

    #[test]
    fn nodes_are_queried_in_turn() {
        let (mut state, _) = state();
        let connected = nodes(&[1, 2, 3]);
        let mut first = || state.nodes_to_query(&connected)[0].clone();
        assert_eq!([first(), first(), first(), first()], [node(1), node(2), node(3), node(1)]);
        assert_eq!(state.nodes_to_query(&BTreeSet::new()), []);
    }

    #[test]
    fn importing_nodes_without_slots_are_kept_for_a_minute() {
        let (mut state, now) = state();
        assert_eq!(state.nodes_to_keep(false, now), nodes(&[1]));
        state.record_map(&node(1), SlotMap::single(node(2)));
        state.record_asked(&node(3), now);
        assert_eq!(state.nodes_to_keep(true, now), nodes(&[2, 3]));
        let later = now + KEEP_IMPORTING;
        assert_eq!(state.nodes_to_keep(true, later), nodes(&[2]));
        assert_eq!(state.nodes_to_keep(false, later), nodes(&[1, 2]));
    }
}

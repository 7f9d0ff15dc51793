//! The nodes of a cluster's slots.

use std::collections::HashMap;

use redis::Value;

use super::discovery::text;
use crate::keyspace::{Keyspace, SLOTS};
use crate::url::{Address, AddressMap};

/// The node of each slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotMap {
    pub(crate) nodes: Vec<Address>,
    /// For each slot, its owner, if it has one. Empty if the first node has all slots.
    owners: Vec<Option<Owner>>,
}

/// The owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    /// The index of the node.
    node: usize,
    /// The configuration epoch under which the node claims the slot: of two claims, the cluster
    /// follows the higher one. 0 if unknown.
    epoch: u64,
}

impl SlotMap {
    /// A single node has all slots.
    pub(crate) fn single(address: Address) -> Self {
        SlotMap { nodes: vec![address], owners: Vec::new() }
    }

    /// Parses the reply to `CLUSTER SLOTS`: ranges of slots, each with its primary, then replicas.
    /// `epochs` has the configuration epoch of each node by its id.
    pub(crate) fn from_reply(
        reply: &Value,
        epochs: &HashMap<String, u64>,
        speaker: &Address,
    ) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let mut slots = SlotMap { nodes: Vec::new(), owners: vec![None; usize::from(SLOTS)] };
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [first, last, primary, ..] = &range[..] else { return None };
            let (first, last) = (number(first)?, number(last)?);
            let Value::Array(primary) = primary else { return None };
            let [host, port, rest @ ..] = &primary[..] else { return None };
            let port = u16::try_from(number(port)?).ok()?;
            let node = slots.add_node(&Address::relative_to(speaker, &text(host)?, port));
            let id = rest.first().and_then(text);
            let epoch = id.and_then(|id| epochs.get(&id).copied()).unwrap_or(0);
            slots.owners.get_mut(first..=last)?.fill(Some(Owner { node, epoch }));
        }
        Some(slots).filter(|slots| !slots.nodes.is_empty())
    }

    /// Replaces the addresses that the servers announced.
    pub(crate) fn translate(mut self, addresses: &AddressMap) -> Self {
        for node in &mut self.nodes {
            *node = addresses.translate(node.clone());
        }
        self
    }

    /// Takes over a newer map. A slot keeps its owner if the map names another under an epoch that
    /// is not higher: the map is then older than what is known, unless the map of a second node,
    /// `confirmation`, says the same. Returns whether the map contradicts what is known.
    pub(crate) fn merge(&mut self, newer: SlotMap, confirmation: Option<&SlotMap>) -> bool {
        let previous = std::mem::replace(self, newer);
        if previous.owners.is_empty() || self.owners.is_empty() {
            return false;
        }
        let mut contradicts = false;
        for slot in 0..SLOTS {
            let index = usize::from(slot);
            let Some(known) = previous.owners[index] else { continue };
            let known_address = &previous.nodes[known.node];
            let new_address = self.node_of(slot);
            let is_newer = self.owners[index].is_some_and(|owner| owner.epoch > known.epoch);
            if new_address == Some(known_address) {
                if let Some(owner) = &mut self.owners[index] {
                    owner.epoch = owner.epoch.max(known.epoch);
                }
                continue;
            } else if is_newer {
                continue;
            }
            let is_confirmed = confirmation.is_some_and(|other| other.node_of(slot) == new_address);
            if !is_confirmed {
                contradicts = true;
                let node = self.add_node(known_address);
                self.owners[index] = Some(Owner { node, epoch: known.epoch });
            }
        }
        self.remove_unused_nodes();
        contradicts
    }

    fn remove_unused_nodes(&mut self) {
        let mut used = vec![false; self.nodes.len()];
        self.owners.iter().flatten().for_each(|owner| used[owner.node] = true);
        if used.iter().all(|used| *used) {
            return;
        }
        let nodes = std::mem::take(&mut self.nodes);
        let mut indices = Vec::with_capacity(nodes.len());
        for (address, used) in nodes.into_iter().zip(used) {
            indices.push(self.nodes.len());
            if used {
                self.nodes.push(address);
            }
        }
        self.owners.iter_mut().flatten().for_each(|owner| owner.node = indices[owner.node]);
    }

    /// Moves a slot to another node, as a redirection says. The epoch of the slot remains, so that
    /// the next map with a higher one replaces this.
    pub(crate) fn move_slot(&mut self, slot: u16, to: &Address) {
        let node = self.add_node(to);
        if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
            let epoch = owner.map_or(0, |owner| owner.epoch);
            *owner = Some(Owner { node, epoch });
        }
    }

    /// Returns the node of a slot.
    pub(crate) fn node_of(&self, slot: u16) -> Option<&Address> {
        if self.owners.is_empty() {
            return self.nodes.first();
        }
        let owner = (*self.owners.get(usize::from(slot))?)?;
        self.nodes.get(owner.node)
    }

    /// Returns the node of each partition.
    pub(crate) fn by_partition(&self, keyspace: &Keyspace) -> Vec<Option<Address>> {
        let node_of = |partition| self.node_of(keyspace.slot_of_partition(partition)).cloned();
        (0..keyspace.partition_count()).map(node_of).collect()
    }

    /// Returns the index of a node, which is added if necessary.
    fn add_node(&mut self, address: &Address) -> usize {
        let known = self.nodes.iter().position(|node| node == address);
        known.unwrap_or_else(|| {
            self.nodes.push(address.clone());
            self.nodes.len() - 1
        })
    }
}

/// Parses the configuration epoch of each node, by its id, from the reply to `CLUSTER NODES`: one line
/// per node with its id, address, flags, primary, two times, epoch, link state and slots.
pub(super) fn parse_epochs(reply: &str) -> HashMap<String, u64> {
    let node = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.nth(5)?.parse().ok()?))
    };
    reply.lines().filter_map(node).collect()
}

fn number(value: &Value) -> Option<usize> {
    let Value::Int(int) = value else { return None };
    usize::try_from(*int).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let node = Value::Array(vec![host, Value::Int(port), bulk("id"), Value::Array(Vec::new())]);
        Value::Array(vec![Value::Int(first), Value::Int(last), node.clone(), node])
    }

    fn speaker() -> Address {
        Address::tcp("h", 1)
    }

    fn parse(reply: &Value) -> Option<SlotMap> {
        SlotMap::from_reply(reply, &HashMap::new(), &speaker())
    }

    #[test]
    fn slots_are_parsed_and_moved() {
        let reply = Value::Array(vec![
            range(0, 100, bulk("10.0.0.1"), 7000),
            range(101, 16_383, Value::Nil, 7001),
        ]);
        let mut slots = parse(&reply).unwrap();
        assert_eq!(slots.node_of(100), Some(&Address::tcp("10.0.0.1", 7000)));
        assert_eq!(slots.node_of(101), Some(&Address::tcp("h", 7001)));
        let to = Address::from_redirection(":7002", &speaker()).unwrap();
        slots.move_slot(101, &to);
        assert_eq!(slots.node_of(101), Some(&Address::tcp("h", 7002)));
        assert_eq!(slots.node_of(102), Some(&Address::tcp("h", 7001)));
    }

    #[test]
    fn invalid_replies_are_rejected() {
        for reply in [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 99_999, bulk("h"), 1)]),
            Value::Array(vec![range(5, 4, bulk("h"), 99_999)]),
        ] {
            assert_eq!(parse(&reply), None, "{reply:?}");
        }
    }

    #[test]
    fn epochs_are_parsed() {
        let reply = "07c3 127.0.0.1:30004@31004,name slave e7d1 0 1426238317239 4 connected\n\
                     e7d1 127.0.0.1:30001@31001 myself,master - 0 0 12 connected 0-5460\n\n?";
        let epochs = parse_epochs(reply);
        assert_eq!((epochs.len(), epochs["07c3"], epochs["e7d1"]), (2, 4, 12));
    }

    /// A map in which a node owns all slots under an epoch.
    fn owned(port: u16, epoch: u64) -> SlotMap {
        let owners = vec![Some(Owner { node: 0, epoch }); usize::from(SLOTS)];
        SlotMap { nodes: vec![Address::tcp("h", port)], owners }
    }

    #[test]
    fn a_map_of_a_lower_epoch_changes_nothing_until_it_is_confirmed() {
        let mut slots = owned(1, 5);
        assert!(!slots.merge(owned(2, 6), None));
        assert_eq!(slots, owned(2, 6));
        for epoch in [0, 5, 6] {
            assert!(slots.merge(owned(1, epoch), None), "{epoch}");
            assert_eq!(slots, owned(2, 6));
        }
        assert!(!slots.merge(owned(1, 6), Some(&owned(1, 6))));
        assert_eq!(slots, owned(1, 6));
    }

    #[test]
    fn a_redirection_holds_until_a_map_with_a_higher_epoch() {
        let mut slots = owned(1, 5);
        slots.move_slot(7, &Address::tcp("h", 2));
        assert!(slots.merge(owned(1, 5), None));
        assert_eq!(slots.node_of(7), Some(&Address::tcp("h", 2)));
        assert_eq!(slots.node_of(8), Some(&Address::tcp("h", 1)));
        assert!(!slots.merge(owned(1, 6), None));
        assert_eq!(slots, owned(1, 6));
    }
}

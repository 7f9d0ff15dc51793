//! The nodes of a cluster's slots.

use redis::Value;

use super::discovery::text;
use crate::keyspace::{Keyspace, SLOTS};
use crate::url::Address;

/// The node of each slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotMap {
    pub(crate) nodes: Vec<Address>,
    /// For each slot, the index of its node, if it has one. Empty if the first node has all slots.
    node_indices: Vec<Option<usize>>,
}

impl SlotMap {
    /// A single node has all slots.
    pub(crate) fn single(address: Address) -> Self {
        SlotMap { nodes: vec![address], node_indices: Vec::new() }
    }

    /// Parses the reply to `CLUSTER SLOTS`: ranges of slots, each with its primary, then replicas.
    pub(crate) fn from_reply(reply: &Value, speaker: &Address) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let mut slots = SlotMap { nodes: Vec::new(), node_indices: vec![None; usize::from(SLOTS)] };
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [first, last, primary, ..] = &range[..] else { return None };
            let (first, last) = (number(first)?, number(last)?);
            let Value::Array(primary) = primary else { return None };
            let [host, port, ..] = &primary[..] else { return None };
            let port = u16::try_from(number(port)?).ok()?;
            let node = slots.add_node(&Address::relative_to(speaker, &text(host)?, port));
            slots.node_indices.get_mut(first..=last)?.fill(Some(node));
        }
        Some(slots).filter(|slots| !slots.nodes.is_empty())
    }

    /// Moves a slot to another node.
    pub(crate) fn move_slot(&mut self, slot: u16, to: &Address) {
        let node = self.add_node(to);
        if let Some(index) = self.node_indices.get_mut(usize::from(slot)) {
            *index = Some(node);
        }
    }

    /// Returns the node of a slot.
    pub(crate) fn node_of(&self, slot: u16) -> Option<&Address> {
        if self.node_indices.is_empty() {
            return self.nodes.first();
        }
        let index = (*self.node_indices.get(usize::from(slot))?)?;
        self.nodes.get(index)
    }

    /// Returns the node of each partition.
    pub(crate) fn by_partition(
        &self,
        keyspace: &Keyspace,
        partitions: u16,
    ) -> Vec<Option<Address>> {
        let node_of = |partition| self.node_of(keyspace.slot_of_partition(partition)).cloned();
        (0..partitions).map(node_of).collect()
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

    #[test]
    fn slots_are_parsed_and_moved() {
        let reply = Value::Array(vec![
            range(0, 100, bulk("10.0.0.1"), 7000),
            range(101, 16_383, Value::Nil, 7001),
        ]);
        let speaker = Address::tcp("h", 1);
        let mut slots = SlotMap::from_reply(&reply, &speaker).unwrap();
        assert_eq!(slots.node_of(100), Some(&Address::tcp("10.0.0.1", 7000)));
        assert_eq!(slots.node_of(101), Some(&Address::tcp("h", 7001)));
        let to = Address::from_redirection(":7002", &speaker).unwrap();
        slots.move_slot(101, &to);
        assert_eq!(slots.node_of(101), Some(&Address::tcp("h", 7002)));
        assert_eq!(slots.node_of(102), Some(&Address::tcp("h", 7001)));
    }

    #[test]
    fn invalid_replies_are_rejected() {
        let speaker = Address::tcp("h", 1);
        for reply in [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 99_999, bulk("h"), 1)]),
            Value::Array(vec![range(5, 4, bulk("h"), 99_999)]),
        ] {
            assert_eq!(SlotMap::from_reply(&reply, &speaker), None, "{reply:?}");
        }
    }
}

//! Which node has which slots, as a cluster tells it.

use redis::Value;

use crate::names::{Names, SLOTS};
use crate::url::Address;

/// Where keys are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) nodes: Vec<Address>,
    /// For each slot the place of its node; none where there is none. Empty if one has all keys.
    of_slot: Vec<Option<usize>>,
}

impl Found {
    /// All keys are with one.
    pub(crate) fn one(address: Address) -> Self {
        Found { nodes: vec![address], of_slot: Vec::new() }
    }

    /// Reads what `CLUSTER SLOTS` answers: ranges of slots, each with its primary, then its replicas.
    pub(crate) fn of_reply(reply: &Value, speaker: &Address) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let mut found = Found { nodes: Vec::new(), of_slot: vec![None; usize::from(SLOTS)] };
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [first, last, primary, ..] = &range[..] else { return None };
            let (first, last) = (number(first)?, number(last)?);
            let Value::Array(primary) = primary else { return None };
            let [host, port, ..] = &primary[..] else { return None };
            let port = u16::try_from(number(port)?).ok()?;
            let place = found.place(&Address::at(&text(host)?, port, speaker));
            for slot in found.of_slot.get_mut(first..=last)? {
                *slot = Some(place);
            }
        }
        Some(found).filter(|x| !x.nodes.is_empty())
    }

    /// A slot is another node's.
    pub(crate) fn learn(&mut self, slot: u16, to: &Address) {
        let place = self.place(to);
        if let Some(slot) = self.of_slot.get_mut(usize::from(slot)) {
            *slot = Some(place);
        }
    }

    pub(crate) fn of_slot(&self, slot: u16) -> Option<&Address> {
        if self.of_slot.is_empty() {
            return self.nodes.first();
        }
        self.nodes.get((*self.of_slot.get(usize::from(slot))?)?)
    }

    /// Where each group of keys is.
    pub(crate) fn by_group(&self, names: &Names, groups: usize) -> Vec<Option<Address>> {
        let groups = (0..groups).filter_map(|n| u16::try_from(n).ok());
        groups.map(|group| self.of_slot(names.slot_of_group(group)).cloned()).collect()
    }

    fn place(&mut self, address: &Address) -> usize {
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

/// A text; an empty one where the server does not know, which it says by nil or `?`.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(simple_string) => Some(simple_string.clone()),
        Value::Nil => Some(String::new()),
        _ => None,
    }
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
    fn slots_are_read_and_learned() {
        let reply = Value::Array(vec![
            range(0, 100, bulk("10.0.0.1"), 7000),
            range(101, 16_383, Value::Nil, 7001),
        ]);
        let speaker = Address::tcp("h", 1);
        let mut found = Found::of_reply(&reply, &speaker).unwrap();
        assert_eq!(found.of_slot(100), Some(&Address::tcp("10.0.0.1", 7000)));
        assert_eq!(found.of_slot(101), Some(&Address::tcp("h", 7001)));
        let to = Address::of_redirection(":7002", &speaker).unwrap();
        found.learn(101, &to);
        assert_eq!(found.of_slot(101), Some(&Address::tcp("h", 7002)));
        assert_eq!(found.of_slot(102), Some(&Address::tcp("h", 7001)));
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let speaker = Address::tcp("h", 1);
        for reply in [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 99_999, bulk("h"), 1)]),
            Value::Array(vec![range(5, 4, bulk("h"), 99_999)]),
        ] {
            assert_eq!(Found::of_reply(&reply, &speaker), None, "{reply:?}");
        }
    }
}

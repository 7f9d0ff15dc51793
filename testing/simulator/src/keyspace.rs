//! The keys of a server, with their expiry in the server's time.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_testkit::slot_of;

/// A value and its expiry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// In ms since the epoch.
    pub(crate) expires_at: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    String(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    SortedSet(SortedSet),
}

impl Value {
    fn is_empty(&self) -> bool {
        match self {
            Value::String(_) => false,
            Value::Hash(fields) => fields.is_empty(),
            Value::SortedSet(set) => set.scores.is_empty(),
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::Hash(_) => "hash",
            Value::SortedSet(_) => "zset",
        }
    }
}

/// A score, which is a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score(pub(crate) f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Members by score, then by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SortedSet {
    scores: BTreeMap<Vec<u8>, Score>,
    order: BTreeSet<(Score, Vec<u8>)>,
}

impl SortedSet {
    /// Adds a member or changes its score; returns whether it is new.
    pub(crate) fn insert(&mut self, member: &[u8], score: Score) -> bool {
        let previous = self.scores.insert(member.to_vec(), score);
        if let Some(previous) = previous {
            self.order.remove(&(previous, member.to_vec()));
        }
        self.order.insert((score, member.to_vec()));
        previous.is_none()
    }

    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.order.remove(&(score, member.to_vec()))
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<Score> {
        self.scores.get(member).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &(Score, Vec<u8>)> {
        self.order.iter()
    }
}

/// The keys of a database. On a cluster they are grouped by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyspace {
    is_cluster: bool,
    slots: BTreeMap<u16, BTreeMap<Vec<u8>, Entry>>,
}

impl Keyspace {
    pub(crate) fn new(is_cluster: bool) -> Self {
        Keyspace { is_cluster, slots: BTreeMap::new() }
    }

    fn slot(&self, key: &[u8]) -> u16 {
        if self.is_cluster { slot_of(key) } else { 0 }
    }

    /// Returns the entry of a key that has not expired.
    pub(crate) fn get(&self, key: &[u8], now: u64) -> Option<&Entry> {
        let entry = self.slots.get(&self.slot(key))?.get(key)?;
        entry.expires_at.is_none_or(|at| at > now).then_some(entry)
    }

    pub(crate) fn get_mut(&mut self, key: &[u8], now: u64) -> Option<&mut Entry> {
        let entry = self.slots.get_mut(&self.slot(key))?.get_mut(key)?;
        entry.expires_at.is_none_or(|at| at > now).then_some(entry)
    }

    pub(crate) fn insert(&mut self, key: &[u8], entry: Entry) {
        self.slots.entry(self.slot(key)).or_default().insert(key.to_vec(), entry);
    }

    /// Removes a key; returns whether it had not expired.
    pub(crate) fn remove(&mut self, key: &[u8], now: u64) -> bool {
        let slot = self.slot(key);
        let entry = self.slots.get_mut(&slot).and_then(|keys| keys.remove(key));
        entry.is_some_and(|entry| entry.expires_at.is_none_or(|at| at > now))
    }

    /// Removes a key whose last member was removed.
    pub(crate) fn remove_if_empty(&mut self, key: &[u8]) {
        let slot = self.slot(key);
        if let Some(keys) = self.slots.get_mut(&slot)
            && keys.get(key).is_some_and(|entry| entry.value.is_empty())
        {
            keys.remove(key);
        }
    }

    /// Takes the first key of a slot.
    pub(crate) fn pop_of_slot(&mut self, slot: u16) -> Option<(Vec<u8>, Entry)> {
        self.slots.get_mut(&slot)?.pop_first()
    }

    pub(crate) fn len_of_slot(&self, slot: u16) -> usize {
        self.slots.get(&slot).map_or(0, BTreeMap::len)
    }

    /// Removes all keys of a slot.
    pub(crate) fn remove_slot(&mut self, slot: u16) -> impl Iterator<Item = Vec<u8>> + use<> {
        self.slots.remove(&slot).unwrap_or_default().into_keys()
    }

    /// Iterates over the keys that have not expired.
    pub(crate) fn iter(&self, now: u64) -> impl Iterator<Item = (&[u8], &Entry)> {
        let entries = self.slots.values().flatten();
        let is_live = move |entry: &Entry| entry.expires_at.is_none_or(|at| at > now);
        entries.filter(move |(_, entry)| is_live(entry)).map(|(key, entry)| (key.as_slice(), entry))
    }
}

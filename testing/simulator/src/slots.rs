//! The slots of a cluster: who owns them, and the redirections of clients.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tollgate_testkit::slot_of;

/// The number of slots.
pub(crate) const SLOTS: u16 = 16_384;
/// The port of every server; each has an address of its own.
pub(crate) const PORT: u16 = 6379;

/// Returns the address of a server.
pub(crate) fn address_of(index: usize) -> (String, u16) {
    (format!("10.0.{}.{}", index / 250, index % 250 + 1), PORT)
}

/// Returns the id of a node.
pub(crate) fn node_id(index: usize) -> String {
    format!("{:040x}", index + 1)
}

/// The owner of each slot, at a version.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotTable {
    /// Newer assignments have higher versions.
    pub(crate) version: u64,
    /// The first slot of each range, and its owner.
    starts: BTreeMap<u16, Option<usize>>,
    pub(crate) members: BTreeMap<usize, Member>,
}

/// A node as others know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) primary: Option<usize>,
    /// Increases with each assignment of slots to the node, above those of all others.
    pub(crate) epoch: u64,
}

impl SlotTable {
    pub(crate) fn owner(&self, slot: u16) -> Option<usize> {
        *self.starts.range(..=slot).next_back()?.1
    }

    /// Assigns a range of slots.
    pub(crate) fn assign(&mut self, slots: Range<u16>, owner: Option<usize>) {
        self.raise_epoch(owner);
        let after = self.owner(slots.end);
        self.starts.retain(|start, _| !slots.contains(start));
        self.starts.insert(slots.start, owner);
        if slots.end < SLOTS {
            self.starts.entry(slots.end).or_insert(after);
        }
    }

    /// Assigns all slots of an owner to another.
    pub(crate) fn replace_owner(&mut self, from: usize, to: usize) {
        self.raise_epoch(Some(to));
        self.starts.values_mut().filter(|owner| **owner == Some(from)).for_each(|owner| {
            *owner = Some(to);
        });
    }

    /// Gives an owner the highest epoch.
    fn raise_epoch(&mut self, owner: Option<usize>) {
        let highest = self.members.values().map(|member| member.epoch).max();
        if let Some(owner) = owner {
            self.members.entry(owner).or_default().epoch = highest.unwrap_or(0) + 1;
        }
    }

    /// Returns the ranges that have an owner; adjacent ranges have different owners.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (Range<u16>, usize)> {
        let mut ranges: Vec<(Range<u16>, Option<usize>)> = Vec::new();
        for (start, owner) in &self.starts {
            match ranges.last_mut() {
                Some((_, last)) if last == owner => {}
                last => {
                    if let Some((range, _)) = last {
                        range.end = *start;
                    }
                    ranges.push((*start..SLOTS, *owner));
                }
            }
        }
        ranges.into_iter().filter_map(|(range, owner)| Some((range, owner?)))
    }

    pub(crate) fn replicas_of(&self, primary: usize) -> impl Iterator<Item = usize> {
        let members = self.members.iter();
        let replicas = members.filter(move |(_, member)| member.primary == Some(primary));
        replicas.map(|(index, _)| *index)
    }

    fn is_complete(&self) -> bool {
        self.starts.contains_key(&0) && self.starts.values().all(Option::is_some)
    }
}

/// Why a node of a cluster does not execute a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirection {
    Moved { slot: u16, to: usize },
    Ask { slot: u16, to: usize },
    TryAgain,
    CrossSlot,
    Unbound,
    Down,
}

impl Redirection {
    /// Returns the text of the error.
    pub(crate) fn text(self) -> String {
        let redirect = |kind: &str, slot: u16, to: usize| {
            let (host, port) = address_of(to);
            format!("{kind} {slot} {host}:{port}")
        };
        match self {
            Redirection::Moved { slot, to } => redirect("MOVED", slot, to),
            Redirection::Ask { slot, to } => redirect("ASK", slot, to),
            Redirection::TryAgain => {
                "TRYAGAIN Multiple keys request during rehashing of slot".to_owned()
            }
            Redirection::CrossSlot => {
                "CROSSSLOT Keys in request don't hash to the same slot".to_owned()
            }
            Redirection::Unbound => "CLUSTERDOWN Hash slot not served".to_owned(),
            Redirection::Down => "CLUSTERDOWN The cluster is down".to_owned(),
        }
    }
}

/// The cluster as a node knows it.
#[derive(Clone, Debug)]
pub(crate) struct ClusterView {
    pub(crate) index: usize,
    pub(crate) table: Arc<SlotTable>,
    /// The target of each slot that is being migrated from this node.
    pub(crate) migrating: BTreeMap<u16, usize>,
    /// The source of each slot that is being migrated to this node.
    pub(crate) importing: BTreeMap<u16, usize>,
    /// Whether the node considers the cluster down for a reason other than slots without an owner.
    pub(crate) is_stopped: bool,
}

impl ClusterView {
    pub(crate) fn new(index: usize, table: Arc<SlotTable>) -> Self {
        let (migrating, importing) = (BTreeMap::new(), BTreeMap::new());
        ClusterView { index, table, migrating, importing, is_stopped: false }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_stopped || !self.table.is_complete()
    }

    /// Describes the migrations, as `CLUSTER NODES` does.
    pub(crate) fn migrations(&self) -> impl Iterator<Item = String> {
        let to = self.migrating.iter().map(|(slot, to)| format!(" [{slot}->-{}]", node_id(*to)));
        let from =
            self.importing.iter().map(|(slot, from)| format!(" [{slot}-<-{}]", node_id(*from)));
        to.chain(from)
    }

    /// Adopts a newer assignment, which ends the migrations of slots that have moved.
    pub(crate) fn adopt(&mut self, table: Arc<SlotTable>) {
        if table.version > self.table.version {
            self.migrating.retain(|slot, _| table.owner(*slot) == Some(self.index));
            self.importing.retain(|slot, from| table.owner(*slot) == Some(*from));
            self.table = table;
        }
    }

    /// Checks whether this node executes a command with these keys, as `getNodeByQuery` does.
    pub(crate) fn route(
        &self,
        keys: &[Vec<u8>],
        is_asking: bool,
        has_key: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Redirection> {
        let Some(first) = keys.first() else { return Ok(()) };
        let slot = slot_of(first);
        let owner = self.table.owner(slot).ok_or(Redirection::Unbound)?;
        let target = self.migrating.get(&slot).filter(|_| owner == self.index);
        let is_importing = self.importing.contains_key(&slot);
        let is_other = |key: &&Vec<u8>| *key != first;
        if keys.iter().filter(is_other).any(|key| slot_of(key) != slot) {
            return Err(Redirection::CrossSlot);
        }
        if self.is_down() {
            return Err(Redirection::Down);
        }
        let missing = || keys.iter().filter(|key| !has_key(key)).count();
        if let Some(to) = target {
            return match missing() {
                0 => Ok(()),
                missing if missing < keys.len() => Err(Redirection::TryAgain),
                _ => Err(Redirection::Ask { slot, to: *to }),
            };
        }
        if is_importing && is_asking {
            let has_several = keys.iter().any(|key| is_other(&key));
            let is_partial = has_several && missing() > 0;
            return if is_partial { Err(Redirection::TryAgain) } else { Ok(()) };
        }
        if owner == self.index { Ok(()) } else { Err(Redirection::Moved { slot, to: owner }) }
    }
}

/// Returns the host and the port of servers, separated by commas.
pub(crate) fn addresses(servers: impl IntoIterator<Item = usize>) -> String {
    let address = |index| format!("{}:{PORT}", address_of(index).0);
    servers.into_iter().map(address).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(table: &SlotTable) -> Vec<(Range<u16>, usize)> {
        table.ranges().collect()
    }

    #[test]
    fn ranges_follow_assignments() {
        let mut table = SlotTable::default();
        assert!(!table.is_complete() && ranges(&table).is_empty());
        table.assign(0..100, Some(0));
        table.assign(100..SLOTS, Some(1));
        assert!(table.is_complete());
        table.assign(50..51, Some(1));
        table.assign(99..101, Some(0));
        assert_eq!(ranges(&table), [(0..50, 0), (50..51, 1), (51..101, 0), (101..SLOTS, 1)]);
        table.assign(50..51, Some(0));
        assert_eq!(ranges(&table), [(0..101, 0), (101..SLOTS, 1)]);
        table.replace_owner(1, 2);
        assert_eq!((table.owner(101), table.owner(SLOTS - 1)), (Some(2), Some(2)));
        table.assign(0..1, None);
        assert_eq!(ranges(&table), [(1..101, 0), (101..SLOTS, 2)]);
        assert!(!table.is_complete());
    }
}

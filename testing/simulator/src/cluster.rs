//! A cluster, and the migration of slots.

use std::sync::Arc;
use std::time::Duration;

use crate::node::{Effect, Kind};
use crate::server::Server;
use crate::slots::{ClusterView, SLOTS, addresses};
use crate::world::Shared;

/// A cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    world: Arc<Shared>,
}

impl Cluster {
    pub(crate) fn new(world: &Arc<Shared>) -> Self {
        Cluster { world: Arc::clone(world) }
    }

    /// Starts a primary without slots.
    #[must_use]
    pub fn start_primary(&self) -> Server {
        let index = self.world.with(|state| {
            let view = ClusterView::new(state.processes.len(), state.slots.clone());
            let index = state.add_server(Kind::ClusterNode(view));
            state.update_slots(index, |_| ());
            index
        });
        Server::new(&self.world, index)
    }

    /// Returns the nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<Server> {
        let nodes = self.world.with(|state| {
            let nodes = state.processes.iter().map(|process| &process.node);
            nodes.filter(|node| node.is_cluster()).map(|node| node.index).collect::<Vec<_>>()
        });
        nodes.into_iter().map(|index| Server::new(&self.world, index)).collect()
    }

    /// Returns the URL of the cluster, with all nodes as seeds.
    #[must_use]
    pub fn url(&self) -> String {
        let nodes = self.nodes();
        format!("redis+cluster://{}", addresses(nodes.iter().map(Server::index)))
    }

    /// Returns the owner of a slot by the latest assignment.
    ///
    /// # Panics
    /// The slot has no owner.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Server {
        let owner = self.world.with(|state| state.slots.owner(slot));
        Server::new(&self.world, owner.expect("the slot has an owner"))
    }

    /// Takes a slot from its owner, so that no node serves it.
    pub fn unassign(&self, slot: u16) {
        let owner = self.owner(slot).index();
        self.world.with(|state| {
            state.update_slots(owner, |table| table.assign(slot..slot + 1, None));
        });
    }

    /// Starts the migration of a slot to another primary. No key moves yet.
    ///
    /// # Panics
    /// The slot does not exist, or `to` owns it already.
    #[must_use]
    pub fn begin_move(&self, slot: u16, to: &Server) -> SlotMove {
        assert!(slot < SLOTS, "the last slot is {}", SLOTS - 1);
        let (from, to) = (self.owner(slot).index(), to.index());
        assert_ne!(from, to, "server {to} owns slot {slot} already");
        self.world.with(|state| {
            state.trace.record(state.now, (Some(from), None), "migrating", &slot.to_le_bytes());
            if let Some(cluster) = &mut state.processes[to].node.cluster {
                cluster.importing.insert(slot, from);
            }
            if let Some(cluster) = &mut state.processes[from].node.cluster {
                cluster.migrating.insert(slot, to);
            }
        });
        SlotMove { world: self.world.clone(), slot, from, to }
    }

    /// Moves a slot to another primary; each key takes a time.
    pub async fn move_slot(&self, slot: u16, to: &Server, time_per_key: Duration) {
        let migration = self.begin_move(slot, to);
        let start = self.world.with(|state| state.now);
        let mut moved = 0;
        while migration.keys_left() > 0 {
            tokio::time::sleep(time_per_key).await;
            // Several keys may be due, because sleeps last whole milliseconds.
            while time_per_key * (moved + 1) <= self.world.with(|state| state.now) - start
                && migration.move_keys(1) > 0
            {
                moved += 1;
            }
        }
        migration.finish();
    }
}

/// A slot that is being migrated: the source answers `ASK` for keys that it does not have, and the
/// target executes commands after `ASKING`. If this is dropped, the slot stays in this state.
#[derive(Debug)]
pub struct SlotMove {
    world: Arc<Shared>,
    slot: u16,
    from: usize,
    to: usize,
}

impl SlotMove {
    /// Returns the number of keys at the source.
    #[must_use]
    pub fn keys_left(&self) -> usize {
        self.world.with(|state| state.processes[self.from].node.databases[0].len_of_slot(self.slot))
    }

    /// Moves up to `count` keys, in the order of their names; returns their number.
    pub fn move_keys(&self, count: usize) -> usize {
        (0..count).take_while(|_| self.move_key()).count()
    }

    fn move_key(&self) -> bool {
        self.world.with(|state| {
            let source = &mut state.process(self.from).node;
            let Some((key, mut entry)) = source.databases[0].pop_of_slot(self.slot) else {
                return false;
            };
            // The time to live is moved, so the clock of the target decides when the key expires.
            let sent_at = source.now_micros() / 1_000;
            let target = &mut state.process(self.to).node;
            let received_at = target.now_micros() / 1_000;
            let left = entry.expires_at.map(|at| at.saturating_sub(sent_at));
            entry.expires_at = left.map(|left| received_at + left);
            if left != Some(0) {
                target.databases[0].insert(&key, entry.clone());
                let entry = Some(entry);
                state.replicate(self.to, vec![Effect::Migration { key: key.clone(), entry }]);
            }
            state.replicate(self.from, vec![Effect::Migration { key, entry: None }]);
            true
        })
    }

    /// Assigns the slot to the target; source and target know it at once. Keys that are left at the
    /// source are deleted.
    pub fn finish(self) {
        self.world.with(|state| {
            let left = state.process(self.from).node.databases[0].remove_slot(self.slot);
            let effects = left.map(|key| Effect::Migration { key, entry: None }).collect();
            state.replicate(self.from, effects);
            state.update_slots(self.to, |table| {
                table.assign(self.slot..self.slot + 1, Some(self.to));
            });
            state.learn_slots(self.from);
        });
    }
}

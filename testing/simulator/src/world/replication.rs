//! Replication: replicas that lag, promotion, and how other nodes learn of it.

use std::sync::Arc;

use super::events::Event;
use super::process::Status;
use super::state::State;
use crate::node::Effect;
use crate::slots::SlotTable;

impl State {
    fn replicas_of(&self, primary: usize) -> Vec<usize> {
        let is_replica = |index: &usize| self.processes[*index].node.primary == Some(primary);
        (0..self.processes.len()).filter(is_replica).collect()
    }

    /// Sends effects to the replicas of a server.
    pub(crate) fn replicate(&mut self, primary: usize, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        let effects: Arc<[Effect]> = effects.into();
        for replica in self.replicas_of(primary) {
            let now = self.now;
            let process = self.process(replica);
            let at = now + process.replication_lag;
            let at = process.backlog.back().map_or(at, |(last, _)| at.max(*last));
            process.backlog.push_back((at, Arc::clone(&effects)));
        }
    }

    /// Makes a server a replica, which copies all data at once.
    pub(crate) fn follow(&mut self, server: usize, primary: usize) {
        self.trace.record(self.now, (Some(server), None), "replicates", &primary.to_le_bytes());
        self.processes[server].node.primary = Some(primary);
        self.synchronize(server);
        self.update_replication();
        if self.processes[server].node.is_cluster() {
            self.update_slots(server, |_| ());
        }
    }

    /// Copies all data of the primary to a replica.
    pub(crate) fn synchronize(&mut self, server: usize) {
        let Some(primary) = self.processes[server].node.primary else { return };
        let source = &self.process(primary).node;
        let (databases, functions) = (source.databases.clone(), source.functions.clone());
        let process = &mut self.processes[server];
        process.backlog.clear();
        (process.node.databases, process.node.functions) = (databases, functions);
    }

    /// Makes a replica a primary. What had not arrived from the old primary is lost.
    pub(crate) fn promote(&mut self, server: usize) {
        let old = self.process(server).node.primary.take();
        let old = old.expect("only a replica is promoted");
        self.trace.record(self.now, (Some(server), None), "promoted", b"");
        self.processes[server].backlog.clear();
        self.update_replication();
        if self.processes[server].node.is_cluster() {
            self.update_slots(server, |table| table.replace_owner(old, server));
        }
        for sentinel in 0..self.processes.len() {
            let process = &self.processes[sentinel];
            let at = self.now + process.gossip_delay;
            for (name, primary) in &process.node.masters {
                if *primary == old {
                    let name = name.clone();
                    self.events.push(at, Event::LearnPrimary { sentinel, name, primary: server });
                }
            }
        }
    }

    /// Updates which servers record effects, after the roles have changed.
    pub(crate) fn update_replication(&mut self) {
        for index in 0..self.processes.len() {
            let has_replicas = !self.replicas_of(index).is_empty();
            self.processes[index].node.records_effects = has_replicas;
        }
    }

    /// Changes the assignment of slots, and announces the current roles. `server` knows it at once,
    /// all others learn it later.
    pub(crate) fn update_slots(&mut self, server: usize, change: impl FnOnce(&mut SlotTable)) {
        let mut table = SlotTable::clone(&self.slots);
        table.version += 1;
        for process in self.processes.iter().filter(|process| process.node.is_cluster()) {
            let member = table.members.entry(process.node.index).or_default();
            member.primary = process.node.primary;
        }
        change(&mut table);
        self.slots = Arc::new(table);
        self.trace.record(
            self.now,
            (Some(server), None),
            "slots",
            &self.slots.version.to_le_bytes(),
        );
        self.learn_slots(server);
        for other in 0..self.processes.len() {
            if self.processes[other].node.is_cluster() && other != server {
                self.schedule_gossip(other);
            }
        }
    }

    /// Schedules that a node learns the latest assignment of slots.
    pub(crate) fn schedule_gossip(&mut self, server: usize) {
        let at = self.now + self.processes[server].gossip_delay;
        self.events.push(at, Event::LearnSlots { server });
    }

    /// Tells a node the latest assignment of slots, unless its process does not run. If another node
    /// has taken over all slots of the node or of its primary, it becomes a replica of that node.
    pub(crate) fn learn_slots(&mut self, server: usize) {
        let process = &mut self.processes[server];
        let Some(cluster) = &mut process.node.cluster else { return };
        if process.status != Status::Running {
            return;
        }
        let primary = process.node.primary.unwrap_or(server);
        let former = cluster.table.ranges().find(|(_, owner)| *owner == primary);
        cluster.adopt(Arc::clone(&self.slots));
        let Some((former, _)) = former else { return };
        if self.slots.ranges().all(|(_, owner)| owner != primary)
            && let Some(heir) = self.slots.owner(former.start).filter(|heir| *heir != server)
        {
            self.follow(server, heir);
        }
    }
}

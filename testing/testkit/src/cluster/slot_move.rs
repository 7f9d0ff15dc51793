//! Migration of a slot to another primary, at once or step by step.

use super::Cluster;
use super::nodes::execute;
use crate::{Reply, Server};

/// A slot in migration: the source replies `ASK` for keys that it does not have, the target serves
/// them after `ASKING`, and a command with keys of both gets `TRYAGAIN`. A dropped value leaves the
/// slot in this state.
#[derive(Debug)]
#[must_use = "the slot is still in migration"]
pub struct SlotMove<'cluster> {
    cluster: &'cluster Cluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl Cluster {
    /// Moves a slot with its keys to the primary `to`, and waits until all nodes agree.
    #[track_caller]
    pub fn move_slot(&self, slot: u16, to: usize) {
        let slot_move = self.begin_move(slot, to);
        slot_move.migrate_all();
        slot_move.finish();
    }

    /// Starts the migration of a slot to the primary `to`: `IMPORTING` at the target, `MIGRATING` at
    /// the source.
    #[track_caller]
    pub fn begin_move(&self, slot: u16, to: usize) -> SlotMove<'_> {
        let slot_move = SlotMove { cluster: self, slot, from: self.primary_of_slot(slot), to };
        assert_ne!(slot_move.from, to, "node {to} already owns slot {slot}");
        slot_move.set(slot_move.target(), &["IMPORTING", &id(slot_move.source())]);
        slot_move.set(slot_move.source(), &["MIGRATING", &id(slot_move.target())]);
        slot_move
    }
}

impl SlotMove<'_> {
    /// The node that loses the slot.
    pub fn source(&self) -> &Server {
        self.cluster.node(self.from)
    }

    /// The node that receives the slot.
    pub fn target(&self) -> &Server {
        self.cluster.node(self.to)
    }

    /// The keys that are still at the source.
    #[track_caller]
    pub fn keys_left(&self) -> Vec<String> {
        self.keys(100).iter().map(Reply::text).collect()
    }

    /// Moves these keys to the target.
    #[track_caller]
    pub fn migrate(&self, keys: &[impl AsRef<[u8]>]) {
        assert_eq!(self.try_migrate(keys), Reply::ok(), "no such key at the source");
    }

    /// Moves these keys to the target; the reply is `NOKEY` if the source has none of them.
    #[track_caller]
    fn try_migrate(&self, keys: &[impl AsRef<[u8]>]) -> Reply {
        let port = self.target().port().to_string();
        let mut args: Vec<&[u8]> =
            [b"MIGRATE".as_slice(), b"127.0.0.1", port.as_bytes(), b"", b"0", b"5000", b"KEYS"]
                .into();
        args.extend(keys.iter().map(AsRef::as_ref));
        self.source().command(&args).expect_no_error("MIGRATE")
    }

    /// Moves all keys to the target.
    #[track_caller]
    pub fn migrate_all(&self) {
        self.migrate_in_batches(100);
    }

    /// Moves all keys to the target, `size` at a time: `redis-cli --cluster reshard` moves ten.
    #[track_caller]
    pub fn migrate_in_batches(&self, size: usize) {
        loop {
            let keys = self.keys(size);
            if keys.is_empty() {
                return;
            }
            let keys: Vec<&[u8]> = keys
                .iter()
                .map(|key| match key {
                    Reply::Bulk(key) => key.as_slice(),
                    _ => panic!("not a key: {key:?}"),
                })
                .collect();
            // They may have expired meanwhile.
            self.try_migrate(&keys);
        }
    }

    /// Assigns the slot to the target, and waits until all nodes agree.
    #[track_caller]
    pub fn finish(self) {
        let target = id(self.target());
        // The target first, so that the slot always has an owner.
        self.set(self.target(), &["NODE", &target]);
        self.set(self.source(), &["NODE", &target]);
        self.cluster.settle();
    }

    #[track_caller]
    fn set(&self, node: &Server, args: &[&str]) {
        let slot = self.slot.to_string();
        execute(node, &[&["CLUSTER", "SETSLOT", &slot], args].concat());
    }

    #[track_caller]
    fn keys(&self, max: usize) -> Vec<Reply> {
        let (slot, max) = (self.slot.to_string(), max.to_string());
        self.source().command(&["CLUSTER", "GETKEYSINSLOT", &slot, &max]).array().to_vec()
    }
}

#[track_caller]
fn id(node: &Server) -> String {
    node.command(&["CLUSTER", "MYID"]).text()
}

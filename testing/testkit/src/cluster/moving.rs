//! Moving a slot from one primary to another, at once or step by step.

use super::Cluster;
use super::join::ask;
use crate::{Reply, Server};

/// A slot that is on its way: the source answers `ASK` for keys that it does not have, the target
/// serves those that say `ASKING`, and what needs keys of both gets `TRYAGAIN`. If it is dropped the
/// slot stays so.
#[derive(Debug)]
#[must_use = "the slot is half moved"]
pub struct SlotMove<'cluster> {
    cluster: &'cluster Cluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl Cluster {
    /// Moves a slot with its keys to the primary `to`, and waits until all nodes know.
    #[track_caller]
    pub fn move_slot(&self, slot: u16, to: usize) {
        let moving = self.begin_move(slot, to);
        moving.migrate_all();
        moving.finish();
    }

    /// Begins to move a slot to the primary `to`: `IMPORTING` there, `MIGRATING` where it is.
    #[track_caller]
    pub fn begin_move(&self, slot: u16, to: usize) -> SlotMove<'_> {
        let moving = SlotMove { cluster: self, slot, from: self.primary_of_slot(slot), to };
        assert_ne!(moving.from, to, "slot {slot} is there already");
        moving.set(moving.target(), &["IMPORTING", &id(moving.source())]);
        moving.set(moving.source(), &["MIGRATING", &id(moving.target())]);
        moving
    }
}

impl SlotMove<'_> {
    /// Where the slot comes from.
    pub fn source(&self) -> &Server {
        self.cluster.node(self.from)
    }

    /// Where it goes.
    pub fn target(&self) -> &Server {
        self.cluster.node(self.to)
    }

    /// The keys that are at the source still.
    #[track_caller]
    pub fn keys_left(&self) -> Vec<String> {
        self.keys().iter().map(Reply::text).collect()
    }

    /// Takes these keys along.
    #[track_caller]
    pub fn migrate(&self, keys: &[impl AsRef<[u8]>]) {
        let port = self.target().port().to_string();
        let mut words: Vec<&[u8]> =
            [b"MIGRATE".as_slice(), b"127.0.0.1", port.as_bytes(), b"", b"0", b"5000", b"KEYS"]
                .into();
        words.extend(keys.iter().map(AsRef::as_ref));
        let reply = self.source().command(&words).expect_no_error("MIGRATE");
        assert_eq!(reply, Reply::ok(), "no such key is at the source");
    }

    /// Takes all keys along.
    #[track_caller]
    pub fn migrate_all(&self) {
        loop {
            let keys = self.keys();
            if keys.is_empty() {
                return;
            }
            let keys: Vec<&[u8]> = keys
                .iter()
                .filter_map(
                    |key| if let Reply::Bulk(key) = key { Some(key.as_slice()) } else { None },
                )
                .collect();
            self.migrate(&keys);
        }
    }

    /// Gives the slot to the target, and waits until all nodes know.
    ///
    /// # Panics
    ///
    /// If keys are left at the source.
    #[track_caller]
    pub fn finish(self) {
        let target = id(self.target());
        // The target first: so nobody is ever without an owner.
        self.set(self.target(), &["NODE", &target]);
        self.set(self.source(), &["NODE", &target]);
        self.cluster.settle();
    }

    /// Calls the move off. Keys that have gone already are lost to the clients.
    #[track_caller]
    pub fn abandon(self) {
        self.set(self.source(), &["STABLE"]);
        self.set(self.target(), &["STABLE"]);
    }

    #[track_caller]
    fn set(&self, node: &Server, words: &[&str]) {
        let slot = self.slot.to_string();
        ask(node, &[&["CLUSTER", "SETSLOT", &slot], words].concat());
    }

    #[track_caller]
    fn keys(&self) -> Vec<Reply> {
        let slot = self.slot.to_string();
        self.source().command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).array().to_vec()
    }
}

#[track_caller]
fn id(node: &Server) -> String {
    node.command(&["CLUSTER", "MYID"]).text()
}

//! Making a cluster of servers, as `redis-cli --cluster create` would.

use super::view::view;
use super::{Cluster, SLOTS};
use crate::{Server, wait};

impl Cluster {
    /// Joins the nodes, of which the first `primaries` own the slots in equal parts.
    #[track_caller]
    pub(super) fn join(&self, primaries: usize) {
        for (epoch, node) in (1..).zip(&self.nodes) {
            // Epochs of their own, or the nodes would first have to settle who has which.
            ask(node, &["CLUSTER", "SET-CONFIG-EPOCH", &i32::to_string(&epoch)]);
        }
        for (place, (first, last)) in shares(primaries).into_iter().enumerate() {
            let (first, last) = (first.to_string(), last.to_string());
            ask(self.node(place), &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        self.meet();
        let ids: Vec<String> =
            self.nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"]).text()).collect();
        let replicas = self.nodes.iter().skip(primaries);
        for (node, primary) in replicas.zip(ids.iter().take(primaries).cycle()) {
            ask(node, &["CLUSTER", "REPLICATE", primary]);
        }
        self.settle_joined(primaries);
    }

    /// Lets every node meet every other: waiting for gossip would take longer.
    #[track_caller]
    fn meet(&self) {
        for (place, node) in self.nodes.iter().enumerate() {
            for other in self.nodes.iter().skip(place + 1) {
                let (port, bus) = (other.port().to_string(), other.bus().to_string());
                ask(node, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        let knows_all = |node: &Server| {
            view(node).is_some_and(|members| {
                members.len() == self.nodes.len() && members.iter().all(|member| !member.is_new)
            })
        };
        wait::until(|| self.nodes.iter().all(knows_all).then_some(()))
            .unwrap_or_else(|| panic!("the nodes do not meet: {:#?}", self.view()));
    }

    #[track_caller]
    fn settle_joined(&self, primaries: usize) {
        let has_replicas = || {
            let members = view(self.node(0)).unwrap_or_default();
            let replicas = members.iter().filter(|member| member.primary.is_some()).count();
            (replicas == self.nodes.len() - primaries).then_some(())
        };
        wait::until(has_replicas)
            .unwrap_or_else(|| panic!("replicas are missing: {:#?}", self.view()));
        self.settle();
    }
}

/// The slots in `parts` equal parts, first and last of each.
fn shares(parts: usize) -> Vec<(u16, u16)> {
    let parts = u16::try_from(parts).expect("a few primaries");
    let bound = |part: u16| {
        let bound = u32::from(SLOTS) * u32::from(part) / u32::from(parts);
        u16::try_from(bound).expect("at most all slots")
    };
    (0..parts).map(|part| (bound(part), bound(part + 1) - 1)).collect()
}

#[track_caller]
pub(super) fn ask(node: &Server, words: &[&str]) {
    node.command(words).expect_no_error(&words.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_shared_out_once() {
        assert_eq!(shares(3), [(0, 5460), (5461, 10921), (10922, 16383)]);
        assert_eq!(shares(1), [(0, 16383)]);
    }
}

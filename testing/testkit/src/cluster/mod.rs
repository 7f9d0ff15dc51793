//! A Redis cluster.

mod nodes;
mod slot;
mod slot_move;

use slot::SLOTS;
pub use slot::slot_of;
pub use slot_move::SlotMove;

use crate::{Config, Network, Reply, Server, Sweep, wait};
use nodes::{Member, execute, view};

/// A cluster of primaries and replicas. Methods identify a node by its index in
/// [`nodes`](Self::nodes), where the initial primaries come first.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Starts a cluster and waits until every node reports `cluster_state:ok`. This takes about three
    /// seconds, two of which are Redis's delay before a node serves.
    #[track_caller]
    pub fn start(primaries: usize, replicas_per: usize) -> Self {
        Self::with(primaries, replicas_per, |config| config)
    }

    /// Like [`start`](Self::start), with the configuration of each node that `configure` returns.
    #[track_caller]
    pub fn with(
        primaries: usize,
        replicas_per: usize,
        configure: impl Fn(Config) -> Config,
    ) -> Self {
        let nodes = primaries * (1 + replicas_per);
        let nodes = (0..nodes).map(|_| start_node(&configure)).collect();
        let cluster = Self { nodes };
        cluster.join(primaries);
        cluster
    }

    /// Starts another primary, which owns no slot until one is moved to it; returns its index. Until
    /// then the cluster does not [`settle`](Self::settle).
    #[track_caller]
    pub fn add_primary(&mut self) -> usize {
        let node = start_node(|config| config);
        let epoch = i32::try_from(self.nodes.len() + 1).expect("a few nodes");
        execute(&node, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch.to_string()]);
        self.nodes.push(node);
        self.meet();
        let node = self.node(self.nodes.len() - 1);
        wait::until(|| reports(node, &["CLUSTER", "INFO"], "cluster_state:ok").then_some(()))
            .unwrap_or_else(|| panic!("the node does not learn the slots: {:#?}", view(node)));
        self.nodes.len() - 1
    }

    /// Starts a cluster with a primary on each host of a network.
    #[track_caller]
    pub fn start_on(network: &Network) -> Self {
        let node = |index| {
            // A node that is isolated for some seconds does not count as failed.
            let timeout = "cluster-node-timeout 15000";
            Server::with(|config| config.cluster().host(network.host(index)).line(timeout))
        };
        let cluster = Self { nodes: (0..network.len()).map(node).collect() };
        cluster.join(cluster.nodes.len());
        cluster
    }

    /// All nodes, including killed ones.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// `redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,…` of all nodes.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Server::address).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    /// The node that owns `slot`.
    #[track_caller]
    pub fn primary_of_slot(&self, slot: u16) -> usize {
        let members = self.view();
        let owner = members.iter().find(|member| member.owns(slot));
        self.index_of(owner.unwrap_or_else(|| panic!("slot {slot} has no owner: {members:?}")))
    }

    /// The primaries that own slots, in order.
    #[track_caller]
    pub fn primaries(&self) -> Vec<usize> {
        let members = self.view();
        let owners = members.iter().filter(|member| !member.slots.is_empty());
        let mut primaries: Vec<usize> = owners.map(|owner| self.index_of(owner)).collect();
        primaries.sort_unstable();
        primaries
    }

    /// The replicas of the node `primary`, in order.
    #[track_caller]
    pub fn replicas_of(&self, primary: usize) -> Vec<usize> {
        let members = self.view();
        let port = self.node(primary).port();
        let id = members.iter().find(|member| member.port == port).map(|member| &member.id);
        let replicas = members.iter().filter(|member| member.primary.as_ref() == id);
        let mut replicas: Vec<usize> = replicas.map(|replica| self.index_of(replica)).collect();
        replicas.sort_unstable();
        replicas
    }

    /// Promotes a replica, with the cooperation of its primary so that no write is lost, and waits
    /// until all nodes agree.
    ///
    /// Do not promote the same node twice within five seconds, by this method or by killing its
    /// primary: Redis 7.0 counts the votes of the first election again, and the cluster does not
    /// converge.
    #[track_caller]
    pub fn failover(&self, replica: usize) {
        let node = self.node(replica);
        execute(node, &["CLUSTER", "FAILOVER"]);
        let role = || node.command(&["ROLE"]).array().first().map(Reply::text);
        wait::until(|| (role()? == "master").then_some(()))
            .unwrap_or_else(|| panic!("the replica was not promoted\n{}", node.log()));
        self.settle();
    }

    /// Kills the node that owns `slot` and returns its index. [`settle`](Self::settle) waits for the
    /// promotion of its replica.
    #[track_caller]
    pub fn kill_primary_of(&self, slot: u16) -> usize {
        let primary = self.primary_of_slot(slot);
        self.node(primary).kill();
        primary
    }

    /// Waits until all running nodes agree, every slot is served, and every replica is connected.
    #[track_caller]
    pub fn settle(&self) {
        if wait::until(|| self.is_settled().then_some(())).is_none() {
            let views: Vec<_> = self.nodes.iter().filter_map(view).collect();
            panic!("the nodes do not agree: {views:#?}");
        }
    }

    /// The keys that begin with `prefix` on all primaries, and their times to live.
    #[track_caller]
    pub fn sweep(&self, prefix: &str) -> Sweep {
        let mut sweep = Sweep::default();
        for primary in self.primaries() {
            sweep.keys.extend(self.node(primary).sweep(prefix).keys);
        }
        sweep
    }

    /// The keys that begin with `prefix` on all primaries, in order.
    #[track_caller]
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).keys.into_keys().collect()
    }

    /// The keys that begin with `prefix` on all primaries and never expire, in order.
    #[track_caller]
    pub fn keys_without_ttl(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).without_ttl()
    }

    /// Joins the nodes as `redis-cli --cluster create` would; the first `primaries` own equal shares
    /// of the slots.
    #[track_caller]
    fn join(&self, primaries: usize) {
        for (epoch, node) in (1..).zip(&self.nodes) {
            // Distinct epochs save the nodes from resolving a conflict.
            execute(node, &["CLUSTER", "SET-CONFIG-EPOCH", &i32::to_string(&epoch)]);
        }
        for (index, (first, last)) in shares(primaries).into_iter().enumerate() {
            let (first, last) = (first.to_string(), last.to_string());
            execute(self.node(index), &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        self.meet();
        let ids: Vec<String> =
            self.nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"]).text()).collect();
        let replicas = self.nodes.iter().skip(primaries);
        for (node, primary) in replicas.zip(ids.iter().take(primaries).cycle()) {
            execute(node, &["CLUSTER", "REPLICATE", primary]);
        }
        let has_replicas = || {
            let members = view(self.node(0))?;
            let replicas = members.iter().filter(|member| member.primary.is_some()).count();
            (replicas == self.nodes.len() - primaries).then_some(())
        };
        wait::until(has_replicas)
            .unwrap_or_else(|| panic!("replicas are missing: {:#?}", self.view()));
        self.settle();
    }

    /// Introduces every node to every other, which is faster than gossip.
    #[track_caller]
    fn meet(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in self.nodes.iter().skip(index + 1) {
                let (port, bus) = (other.port().to_string(), other.bus().to_string());
                execute(node, &["CLUSTER", "MEET", other.host(), &port, &bus]);
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
    fn node(&self, index: usize) -> &Server {
        self.nodes.get(index).unwrap_or_else(|| panic!("no node {index}"))
    }

    /// The cluster according to the first running node.
    #[track_caller]
    fn view(&self) -> Vec<Member> {
        let serving = self.nodes.iter().find(|node| node.is_serving());
        serving.and_then(view).expect("a node serves")
    }

    #[track_caller]
    fn index_of(&self, member: &Member) -> usize {
        let index = self.nodes.iter().position(|node| node.port() == member.port);
        index.unwrap_or_else(|| panic!("not a node of this cluster: {member:?}"))
    }

    fn is_settled(&self) -> bool {
        let serving = || self.nodes.iter().filter(|node| node.is_serving());
        let mut views = serving().map(view);
        let Some(Some(first)) = views.next() else {
            return false;
        };
        // A primary without slots is about to become a replica.
        let roles_are_final =
            first.iter().filter(|member| member.primary.is_none()).all(|primary| {
                let serves = serving().any(|node| node.port() == primary.port);
                let owns = !primary.slots.is_empty();
                if owns { serves && !primary.has_failed } else { !serves }
            });
        roles_are_final
            && views.all(|view| view.as_ref() == Some(&first))
            && serving().all(|node| {
                reports(node, &["CLUSTER", "INFO"], "cluster_state:ok")
                    && !reports(node, &["INFO", "replication"], "master_link_status:down")
            })
    }
}

#[track_caller]
fn start_node(configure: impl Fn(Config) -> Config) -> Server {
    Server::with(|config| {
        configure(config)
            .cluster()
            // How long a node may be silent before it counts as failed. Shorter values cause false
            // failovers on a busy machine.
            .line("cluster-node-timeout 1000")
            // Replicas do not migrate, and can be promoted however old their data is.
            .line("cluster-migration-barrier 100")
            .line("cluster-replica-validity-factor 0")
    })
}

/// Whether the reply contains the line.
fn reports(node: &Server, args: &[&str], line: &str) -> bool {
    let reply = node.try_command(args);
    reply.is_ok_and(|reply| reply.text().lines().any(|found| found.trim() == line))
}

/// The first and last slot of each of `parts` equal shares.
fn shares(parts: usize) -> Vec<(u16, u16)> {
    let parts = u16::try_from(parts).expect("a few primaries");
    let bound = |part: u16| {
        let bound = u32::from(SLOTS) * u32::from(part) / u32::from(parts);
        u16::try_from(bound).expect("at most all slots")
    };
    (0..parts).map(|part| (bound(part), bound(part + 1) - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_every_slot_once() {
        assert_eq!(shares(3), [(0, 5460), (5461, 10921), (10922, 16383)]);
        assert_eq!(shares(1), [(0, 16383)]);
    }
}

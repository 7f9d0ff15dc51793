//! Servers that are a cluster.

mod join;
mod moving;
mod slot;
mod view;

pub use moving::SlotMove;
pub use slot::{SLOTS, slot_of};

use crate::{Config, Server, Sweep, wait};
use view::{Member, view};

/// A cluster of primaries and their replicas. A node is named by its place in [`nodes`](Self::nodes):
/// those that began as primaries come first.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

/// How a cluster is set up.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    node_timeout_ms: u32,
    node: Config,
}

impl ClusterConfig {
    /// How long a node may be silent before it counts as failed, 1000 ms if not said. With less, a
    /// busy machine sees failures where there are none.
    #[must_use]
    pub fn node_timeout_ms(mut self, node_timeout_ms: u32) -> Self {
        self.node_timeout_ms = node_timeout_ms;
        self
    }

    /// How each node is set up besides. A password is not known to `MIGRATE`, so slots with keys in
    /// them do not move then.
    #[must_use]
    pub fn node(mut self, configure: impl FnOnce(Config) -> Config) -> Self {
        self.node = configure(self.node);
        self
    }
}

/// How a replica takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// Its primary hands over: nothing written is lost.
    HandOver,
    /// `TAKEOVER`: without asking the primary or anybody else.
    TakeOver,
}

impl Cluster {
    /// Starts a cluster and waits until every node says that it is well. It takes some three
    /// seconds, two of which each node waits before it dares to serve.
    ///
    /// # Panics
    ///
    /// If it does not come up in time.
    #[track_caller]
    pub fn start(primaries: usize, replicas_per: usize) -> Self {
        Self::with(primaries, replicas_per, |config| config)
    }

    /// Starts one that is set up by `configure`.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn with(
        primaries: usize,
        replicas_per: usize,
        configure: impl FnOnce(ClusterConfig) -> ClusterConfig,
    ) -> Self {
        let config = configure(ClusterConfig { node_timeout_ms: 1000, node: Config::default() });
        let node = || {
            Server::with(|_| {
                config
                    .node
                    .clone()
                    .cluster()
                    .line(&format!("cluster-node-timeout {}", config.node_timeout_ms))
                    // A replica goes where the test puts it, and takes over however old its copy is.
                    .line("cluster-migration-barrier 100")
                    .line("cluster-replica-validity-factor 0")
            })
        };
        let nodes = (0..primaries * (1 + replicas_per)).map(|_| node()).collect();
        let cluster = Self { nodes };
        cluster.join(primaries);
        cluster
    }

    /// The nodes, of which some may have been killed.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// `redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,…` of all nodes.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Server::address).collect();
        let login = self.nodes.first().map(Server::login).unwrap_or_default();
        format!("redis+cluster://{login}{}", addresses.join(","))
    }

    /// The node that owns `slot`.
    ///
    /// # Panics
    ///
    /// If none does.
    #[track_caller]
    pub fn primary_of_slot(&self, slot: u16) -> usize {
        let members = self.view();
        let owner = members.iter().find(|member| member.owns(slot));
        self.place(owner.unwrap_or_else(|| panic!("slot {slot} has no owner: {members:?}")))
    }

    /// The primaries that own slots, in order.
    #[track_caller]
    pub fn primaries(&self) -> Vec<usize> {
        let members = self.view();
        let owners = members.iter().filter(|member| !member.slots.is_empty());
        let mut primaries: Vec<usize> = owners.map(|owner| self.place(owner)).collect();
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
        let mut replicas: Vec<usize> = replicas.map(|replica| self.place(replica)).collect();
        replicas.sort_unstable();
        replicas
    }

    /// Lets a replica become the primary, and waits until all agree.
    ///
    /// Do not let the same node be elected twice within five seconds, by this or because its primary
    /// was killed: Redis 7.0 counts the votes of the first election again, and nobody follows it.
    ///
    /// # Panics
    ///
    /// If it refuses, as a primary does, or it does not come about in time.
    #[track_caller]
    pub fn failover(&self, replica: usize, how: Failover) {
        let words: &[&str] = match how {
            Failover::HandOver => &["CLUSTER", "FAILOVER"],
            Failover::TakeOver => &["CLUSTER", "FAILOVER", "TAKEOVER"],
        };
        let node = self.node(replica);
        node.command(words).expect_no_error("CLUSTER FAILOVER");
        let role = || node.command(&["ROLE"]).array().first().map(crate::Reply::text);
        wait::until(|| (role()? == "master").then_some(()))
            .unwrap_or_else(|| panic!("the replica does not take over\n{}", node.log()));
        self.settle();
    }

    /// Kills the node that owns `slot` and says which it was. [`settle`](Self::settle) waits until
    /// its replica has taken over.
    #[track_caller]
    pub fn kill_primary_of(&self, slot: u16) -> usize {
        let primary = self.primary_of_slot(slot);
        self.node(primary).kill();
        primary
    }

    /// Waits until all nodes that serve agree, every slot is served, and every replica is in step.
    ///
    /// # Panics
    ///
    /// If it does not come about in time.
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

    /// Those of them that never expire.
    #[track_caller]
    pub fn keys_without_ttl(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).without_ttl()
    }

    #[track_caller]
    fn node(&self, place: usize) -> &Server {
        self.nodes.get(place).unwrap_or_else(|| panic!("there is no node {place}"))
    }

    /// What the first node that serves believes.
    #[track_caller]
    fn view(&self) -> Vec<Member> {
        let serving = self.nodes.iter().find(|node| node.is_serving());
        serving.and_then(view).expect("a node serves")
    }

    #[track_caller]
    fn place(&self, member: &Member) -> usize {
        let place = self.nodes.iter().position(|node| node.port() == member.port);
        place.unwrap_or_else(|| panic!("not a node of this cluster: {member:?}"))
    }

    fn is_settled(&self) -> bool {
        let serving = || self.nodes.iter().filter(|node| node.is_serving());
        let mut views = serving().map(view);
        let Some(Some(first)) = views.next() else {
            return false;
        };
        // A primary without slots is about to become the replica of whoever has them now.
        let roles_are_final =
            first.iter().filter(|member| member.primary.is_none()).all(|primary| {
                let serves = serving().any(|node| node.port() == primary.port);
                let owns = !primary.slots.is_empty();
                if owns { serves && !primary.has_failed } else { !serves }
            });
        roles_are_final
            && views.all(|view| view.as_ref() == Some(&first))
            && serving().all(|node| {
                says(node, &["CLUSTER", "INFO"], "cluster_state:ok")
                    && !says(node, &["INFO", "replication"], "master_link_status:down")
            })
    }
}

/// Whether the answer has such a line.
fn says(node: &Server, words: &[&str], line: &str) -> bool {
    let reply = node.try_command(words);
    reply.is_ok_and(|reply| reply.text().lines().any(|found| found.trim() == line))
}

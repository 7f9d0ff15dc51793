//! A server: its faults, its role, and what it has done.

use std::sync::Arc;
use std::time::Duration;

use crate::links::Links;
use crate::node::{Effect, Login, Refusal};
use crate::slots::{address_of, addresses};
use crate::trace::{ReplyFault, ScriptCall, ServerStats};
use crate::world::Shared;
use crate::world::process::{Process, Status};
use crate::world::state::State;

/// A server, a node of a cluster, or a sentinel.
#[derive(Clone, Debug)]
pub struct Server {
    world: Arc<Shared>,
    index: usize,
}

/// What remains of the data of a server that crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// All of it, as with an append-only file that is synchronized with each write.
    Kept,
    /// Nothing.
    Lost,
}

impl Server {
    pub(crate) fn new(world: &Arc<Shared>, index: usize) -> Self {
        Server { world: Arc::clone(world), index }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Process) -> T) -> T {
        self.world.with(|state| change(state.process(self.index)))
    }

    /// Records a fault in the trace, and changes the state.
    fn fault<T>(&self, what: &str, change: impl FnOnce(&mut State) -> T) -> T {
        self.world.with(|state| {
            state.trace.record(state.now, (Some(self.index), None), what, b"");
            change(state)
        })
    }

    /// Returns the index, as in [`World::server`](crate::World::server).
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the host, whose port is 6379.
    #[must_use]
    pub fn host(&self) -> String {
        address_of(self.index).0
    }

    /// Returns the URL of this server alone.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", addresses([self.index]))
    }

    /// Returns the links of all clients to this server.
    #[must_use]
    pub fn links(&self) -> Links {
        Links::new(&self.world, None, Some(self.index))
    }

    /// Stops the process, as `SIGSTOP` does: connections are accepted, but nothing is executed. Does
    /// nothing if the process has crashed.
    pub fn pause(&self) {
        self.fault("paused", |state| {
            state.change_status(self.index, Status::Running, Status::Paused);
        });
    }

    /// Continues a paused process, which first executes all that it has received. Does nothing if the
    /// process is not paused.
    pub fn resume(&self) {
        self.fault("resumed", |state| {
            if state.change_status(self.index, Status::Paused, Status::Running) {
                state.start_process(self.index);
            }
        });
    }

    /// Kills the process: connections are reset, new ones are refused, and scripts are lost.
    pub fn crash(&self, data: Data) {
        self.fault("crashed", |state| {
            let process = state.process(self.index);
            process.status = Status::Crashed;
            process.ready.clear();
            process.node.scripts.clear();
            if data == Data::Lost {
                process.node.clear();
            }
            for id in state.connections_where(|connection| connection.server == self.index) {
                state.reset_peer(id);
            }
        });
    }

    /// Starts the process again after a crash. It answers `LOADING` for a while. Replicas copy the data
    /// of their primary. Does nothing if the process has not crashed.
    pub fn restart(&self, loading: Duration) {
        self.fault("restarted", |state| {
            if !state.change_status(self.index, Status::Crashed, Status::Running) {
                return;
            }
            state.processes[self.index].loaded_at = state.now + loading;
            for server in 0..state.processes.len() {
                let node = &state.processes[server].node;
                if server == self.index || node.primary == Some(self.index) {
                    state.synchronize(server);
                }
            }
            state.start_process(self.index);
        });
    }

    /// Sets how long each command takes. A server executes one command after the other.
    pub fn set_execution_time(&self, time: Duration) {
        self.with(|process| process.execution_time = time);
    }

    /// Sets the condition in which the server rejects commands.
    pub fn set_refusal(&self, refusal: Option<Refusal>) {
        self.fault("refusal", |state| state.processes[self.index].node.refusal = refusal);
    }

    /// Sets the maximum number of accepted connections. The server closes further ones with an error.
    pub fn set_max_clients(&self, max: Option<usize>) {
        self.with(|process| process.max_clients = max);
    }

    /// Sets the user and the password. Connections that are open stay authenticated.
    pub fn set_login(&self, user: &str, password: &str) {
        let login = Login { user: user.to_owned(), password: password.to_owned() };
        self.with(|process| process.node.login = Some(login));
    }

    /// Requires all connections to authenticate again, as a server does whose tokens expire.
    pub fn expire_logins(&self) {
        self.fault("logins expired", |state| {
            let connections = state.connections.values_mut();
            let own = connections.filter(|connection| connection.server == self.index);
            for peer in own.filter_map(|connection| connection.peer.as_mut()) {
                peer.session.is_authenticated = false;
            }
        });
    }

    /// Forgets all scripts and functions, as `SCRIPT FLUSH` and `FUNCTION FLUSH` do.
    pub fn flush_scripts(&self) {
        self.fault("scripts flushed", |state| {
            let node = &mut state.processes[self.index].node;
            node.scripts.clear();
            // Only a primary can forget functions; its replicas do so, too.
            if node.primary.is_none() {
                node.functions.clear();
                let words = vec![b"FUNCTION".to_vec(), b"FLUSH".to_vec()];
                state.replicate(self.index, vec![Effect::Command { database: 0, words }]);
            }
        });
    }

    /// Sets the difference of the server's clock, in µs. A change is a clock step.
    pub fn set_clock_offset(&self, micros: i64) {
        self.fault("clock", |state| state.processes[self.index].node.clock_offset = micros);
    }

    /// Adds a fault for the reply to the next script with keys that is executed. Faults that were added
    /// before apply to the scripts before it.
    ///
    /// There is no fault that duplicates a reply: TCP does not deliver bytes twice.
    pub fn fail_reply(&self, fault: ReplyFault) {
        self.with(|process| process.reply_faults.push_back(fault));
    }

    /// Removes the faults of replies that no script has met.
    pub fn clear_reply_faults(&self) {
        self.with(|process| process.reply_faults.clear());
    }

    /// Sets how much later a replica has the writes of its primary. They are lost if it is promoted
    /// before. Default: at once.
    pub fn set_replication_lag(&self, lag: Duration) {
        self.with(|process| process.replication_lag = lag);
    }

    /// Sets how much later this node or sentinel learns of a promotion or of a moved slot. Default: at
    /// once.
    pub fn set_gossip_delay(&self, delay: Duration) {
        self.with(|process| process.gossip_delay = delay);
    }

    /// Makes this replica a primary. In a cluster it takes over the slots, and the old primary becomes
    /// its replica when it learns of it. Otherwise the old primary remains one until
    /// [`replicate`](Self::replicate) is called, so that both accept writes.
    ///
    /// # Panics
    /// It is a primary already.
    pub fn promote(&self) {
        self.world.with(|state| state.promote(self.index));
    }

    /// Makes this server a replica of another. It copies all data at once. Connections stay open; a
    /// sentinel would also reset them, see [`Links::reset`].
    pub fn replicate(&self, primary: &Server) {
        self.world.with(|state| state.follow(self.index, primary.index));
    }

    /// Sets which server a sentinel reports for a name.
    pub fn set_master(&self, name: &str, primary: &Server) {
        self.with(|process| process.node.masters.insert(name.to_owned(), primary.index));
    }

    /// Sets whether a node considers its cluster down, as one does that cannot reach the majority.
    pub fn set_cluster_down(&self, is_down: bool) {
        self.fault("cluster state", |state| {
            if let Some(cluster) = &mut state.processes[self.index].node.cluster {
                cluster.is_stopped = is_down;
            }
        });
    }

    /// Returns whether the server is a primary by its own knowledge.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        self.with(|process| process.node.primary.is_none())
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.with(|process| process.stats.clone())
    }

    /// Returns the scripts that were executed, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<ScriptCall> {
        self.with(|process| process.calls.clone())
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.world.with(|state| {
            let own = state.connections_where(|connection| {
                connection.server == self.index && connection.peer.is_some()
            });
            own.len()
        })
    }

    /// Returns the keys that have not expired, with their times to live in ms.
    #[must_use]
    pub fn keys(&self) -> Vec<(Vec<u8>, Option<u64>)> {
        self.with(|process| {
            let now = process.node.now_micros() / 1_000;
            let keys = process.node.databases.iter().flat_map(|database| database.iter(now));
            keys.map(|(key, entry)| (key.to_vec(), entry.expires_at.map(|at| at - now))).collect()
        })
    }
}

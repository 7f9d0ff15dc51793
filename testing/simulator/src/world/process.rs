//! The process of a server: one thread that executes one command after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::node::{Effect, Node};
use crate::trace::{ReplyFault, ScriptCall, ServerStats};

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) node: Node,
    pub(crate) status: Status,
    /// Connections with bytes to read.
    pub(crate) ready: VecDeque<u64>,
    /// When the command in progress ends.
    pub(super) busy_until: Duration,
    /// When the process continues, if that is scheduled.
    pub(super) runs_at: Option<Duration>,
    /// When the data has been loaded after a restart.
    pub(crate) loaded_at: Duration,
    pub(crate) execution_time: Duration,
    pub(crate) max_clients: Option<usize>,
    /// The faults of the replies to the next scripts.
    pub(crate) reply_faults: VecDeque<ReplyFault>,
    /// Effects of the primary that have not arrived: when they do, and what they are.
    pub(crate) backlog: VecDeque<(Duration, Arc<[Effect]>)>,
    pub(crate) replication_lag: Duration,
    /// How much later than others a node learns of changes of the cluster or of a primary.
    pub(crate) gossip_delay: Duration,
    pub(crate) stats: ServerStats,
    pub(crate) calls: Vec<ScriptCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Paused,
    Crashed,
}

impl Process {
    pub(crate) fn new(node: Node) -> Self {
        Process {
            node,
            status: Status::Running,
            ready: VecDeque::new(),
            busy_until: Duration::ZERO,
            runs_at: None,
            loaded_at: Duration::ZERO,
            execution_time: Duration::ZERO,
            max_clients: None,
            reply_faults: VecDeque::new(),
            backlog: VecDeque::new(),
            replication_lag: Duration::ZERO,
            gossip_delay: Duration::ZERO,
            stats: ServerStats::default(),
            calls: Vec::new(),
        }
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.status == Status::Crashed
    }

    /// Advances to a time: a replica applies what has arrived by then.
    pub(crate) fn advance_to(&mut self, now: Duration) {
        self.node.now = now;
        self.node.is_loading = self.loaded_at > now;
        while let Some((at, _)) = self.backlog.front()
            && *at <= now
            && let Some((_, effects)) = self.backlog.pop_front()
        {
            self.node.apply(&effects);
        }
    }
}

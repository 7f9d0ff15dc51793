//! A server: the connections to it, and the requests that wait for each.

mod backoff;
mod batch;
mod lane;
mod queue;
mod task;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tollgate_store::{Clock, Failure};

use crate::encoding::PolicyEncodings;
use crate::link::Dialer;
use crate::names::Names;
use crate::options::RedisOptions;
use crate::stats::Counters;
use crate::url::Address;
use crate::waiting::Waiting;
pub(crate) use backoff::Backoff;
use lane::Lane;

/// What all nodes of a store share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) options: RedisOptions,
    pub(crate) names: Names,
    pub(crate) encodings: PolicyEncodings,
    pub(crate) dialer: Dialer,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    /// Whether the store is connected.
    pub(crate) status: watch::Sender<Status>,
    /// Where news goes, if servers can change places.
    pub(crate) news: Option<UnboundedSender<News>>,
}

/// Whether a store is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Connecting,
    Up,
    Down(Failure),
}

/// What a node finds out that is of interest to all.
#[derive(Debug)]
pub(crate) enum News {
    /// A slot is another node's; these have not been executed.
    Moved { slot: u16, to: Address, requests: Vec<Waiting> },
    /// A slot is just being given to another node, and so are these.
    Ask { to: Address, requests: Vec<Waiting> },
    /// The node is no primary; these have not been executed.
    Stale(Vec<Waiting>),
    /// These have not been executed, and may be in a moment.
    Later(Vec<Waiting>),
    /// These are to be sent wherever they belong.
    Route(Vec<Waiting>),
    /// A connection was lost, or could not be made.
    Lost,
}

/// A server, and the connections to it. They close when this is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    address: Address,
    lanes: Box<[Arc<Lane>]>,
}

impl Node {
    /// Connects in the background.
    pub(crate) fn start(address: &Address, common: &Arc<Common>) -> Self {
        let waiting = Arc::new(AtomicUsize::new(0));
        let lane = |index| {
            let lane = Arc::new(Lane::new(Arc::clone(common), Arc::clone(&waiting)));
            task::start(&lane, address.clone(), index == 0);
            lane
        };
        let address = address.clone();
        Node { lanes: (0..common.options.connections).map(lane).collect(), address }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Puts a request into the line before its connection. All of a key take the same one, so that
    /// those that were asked one after the other are decided in that order.
    pub(crate) fn submit(&self, waiting: Waiting) {
        let number = match waiting.asked.checks.first() {
            Some(check) if waiting.line.group == 0 => hash(&check.key),
            _ => usize::from(waiting.line.group),
        };
        if let Some(lane) = self.lanes.get(number % self.lanes.len().max(1)) {
            lane.push(waiting);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|lane| lane.close());
    }
}

/// Fowler, Noll and Vo's hash 1a, mixed once more: its high bits hardly depend on the last bytes.
fn hash(bytes: &[u8]) -> usize {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    usize::try_from(mixed >> 33).unwrap_or(0)
}

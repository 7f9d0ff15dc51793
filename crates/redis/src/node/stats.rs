//! The state of each server, for metrics and logs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tollgate_store::Failure;

use super::pool::Pool;
use crate::connection::CommandChannel;
use crate::stats::RedisStats;
use crate::url::Address;

/// The state of a server, and its counters since the store uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Its address.
    pub address: Box<str>,
    /// The number of connections that are up. Without any, the server is unavailable.
    pub connections: u32,
    /// The cause of the last outage, which may have ended.
    pub failure: Option<Failure>,
    /// The number of outages, with the current one. An outage lasts from the loss of the last connection
    /// to the next connection.
    pub outages: u64,
    /// How long the last outage was, or has been.
    pub last_outage: Option<Duration>,
    /// The number of requests that were sent and not answered yet.
    pub in_flight: usize,
    /// The number of requests that wait to be sent.
    pub queued: usize,
    /// The script calls of all clients, when [`RedisStore::warnings`](crate::RedisStore::warnings) last
    /// read them.
    pub script_time: ScriptTime,
    /// The counters of this server. Events that concern no particular server, such as
    /// [`overshoot`](RedisStats::overshoot), are counted for the store only.
    pub counters: RedisStats,
}

/// The calls of scripts that a server has executed since its start, for all its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptTime {
    /// The number of calls.
    pub calls: u64,
    /// Their execution time, in µs.
    pub sum_us: u64,
}

impl NodeStats {
    /// Returns whether a connection is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.connections > 0
    }
}

/// The servers of a store.
#[derive(Debug, Default)]
pub(crate) struct NodeList(Mutex<Vec<Weak<Pool>>>);

impl NodeList {
    pub(super) fn add(&self, pool: &Arc<Pool>) {
        self.lock().push(Arc::downgrade(pool));
    }

    pub(super) fn remove(&self, pool: &Arc<Pool>) {
        self.lock().retain(|known| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(pool)));
    }

    /// Returns the connections to all servers that are up.
    pub(crate) fn connections(&self) -> Vec<CommandChannel> {
        let pools: Vec<Arc<Pool>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        pools.iter().flat_map(|pool| pool.all_commands()).collect()
    }

    /// Returns the state of each server, by address.
    pub(crate) fn stats(&self) -> Vec<NodeStats> {
        let pools: Vec<Arc<Pool>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        // A server may be dropped and needed again at once: the newer one replaces the older one.
        let by_address: BTreeMap<&Address, &Arc<Pool>> =
            pools.iter().map(|pool| (&pool.address, pool)).collect();
        by_address.into_values().map(|pool| pool.stats()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Pool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

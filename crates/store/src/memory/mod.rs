//! The memory store: a sharded table, decided on the caller's own thread.

mod blocks;
mod check;
mod entry;
mod eviction;
mod request_ids;
mod several;
mod shard;
mod snapshot;
mod table;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, RwLock};

use tollgate_core::{Decision, Micros, Operation, Policy, Request, RequestError, Timestamp};

use crate::clock::{Clock, ManualClock};
use crate::store::{Answer, Store, StoreError};
use crate::sync::{Mutex, lock};
use request_ids::{Known, RequestIds};
pub(crate) use shard::Shard;
pub(crate) use snapshot::{PutBack, Step};
use table::HashState;
pub(crate) use table::Table;

/// What a new key is told when the table is full and nobody can leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFull {
    /// It is denied, with `reason: store`.
    #[default]
    Deny,
    /// It is admitted, and not counted.
    Allow,
}

/// How many keys a table holds unless told otherwise.
pub const MAX_KEYS: usize = 1_000_000;
/// How long a request id is remembered unless told otherwise.
pub const REQUEST_ID_HORIZON: Micros = Micros::from_secs(30);

/// The parts that request ids are kept in.
const ID_SHARDS: usize = 16;

/// How a [`MemoryStore`] is built.
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryStoreBuilder {
    clock: Option<Clock>,
    max_keys: usize,
    table_full: TableFull,
    horizon: Micros,
}

impl MemoryStoreBuilder {
    /// Decides by this clock: for tests, and for logs replayed at their own time.
    pub fn clock(mut self, clock: ManualClock) -> Self {
        self.clock = Some(Clock::Manual(clock));
        self
    }

    /// Holds at most this many keys, at least 1; a million unless told otherwise.
    pub const fn max_keys(mut self, most: usize) -> Self {
        self.max_keys = most;
        self
    }

    /// Tells new keys this when the table is full and nobody can leave.
    pub const fn table_full(mut self, answer: TableFull) -> Self {
        self.table_full = answer;
        self
    }

    /// Remembers request ids this long; 30 s unless told otherwise.
    pub const fn request_id_horizon(mut self, horizon: Micros) -> Self {
        self.horizon = horizon;
        self
    }

    /// The store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        MemoryStore {
            clock: self.clock.unwrap_or_else(Clock::system),
            table: Table::new(self.max_keys.max(1)),
            own_tables: RwLock::default(),
            copying: Mutex::default(),
            table_full: self.table_full,
            horizon: self.horizon,
            id_hasher: HashState::default(),
            request_ids: (0..ID_SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

/// State in this process's memory.
///
/// A check is decided on the caller's own thread under the lock of one of up to 256 shards; on a
/// key that is known it allocates nothing.
///
/// # Example
/// ```
/// use tollgate_core::{Cost, Id, Policy};
/// use tollgate_store::{Key, MemoryStore};
///
/// let store = MemoryStore::builder().max_keys(10_000).build();
/// let api: Policy = "2/h".parse()?;
/// let key = Key::new("user:42")?;
/// let lease = || Id::from_u128(7);
/// assert!(store.check(&api, key, Cost::ONE, lease).allowed());
/// assert!(store.check(&api, key, Cost::ONE, lease).allowed());
/// assert!(!store.check(&api, key, Cost::ONE, lease).allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    table: Table,
    /// Tables of policies that have a bound of their own.
    own_tables: RwLock<HashMap<Box<str>, Arc<Table>>>,
    copying: Mutex<()>,
    table_full: TableFull,
    horizon: Micros,
    id_hasher: HashState,
    request_ids: Box<[Mutex<RequestIds>]>,
}

/// How full a memory store is, and what has happened in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Keys in all tables.
    pub keys: usize,
    /// Bytes allocated for them.
    pub bytes: usize,
    /// Live keys evicted to make room for new ones.
    pub evicted: u64,
    /// New keys that found no room.
    pub full: u64,
    /// States too far ahead of the clock to be believed.
    pub disbelieved: u64,
    /// Log entries merged because a key has more than a log keeps.
    pub merged: u64,
}

/// How full a [`MemoryStore`] is, and whom that has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Keys in all tables.
    pub keys: usize,
    /// The most there may be in them.
    pub max_keys: usize,
    /// Live keys evicted to make room for new ones.
    pub evicted: u64,
    /// New keys that found no room.
    pub full: u64,
}

impl MemoryStore {
    /// A store to be configured.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            clock: None,
            max_keys: MAX_KEYS,
            table_full: TableFull::default(),
            horizon: REQUEST_ID_HORIZON,
        }
    }

    /// The store's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Decides a request of any verb, at once.
    ///
    /// # Errors
    /// The request is not one that can be decided; see [`Request::validate`].
    pub fn decide_now(&self, request: &Request<'_>) -> Result<Answer, RequestError> {
        request.validate()?;
        let now = self.clock.now();
        match request.request_id.filter(|_| request.verb != Operation::Peek) {
            Some(id) => self.decide_once(id, request, now),
            None => Ok(self.decide_at(request, now)),
        }
    }

    /// Decides a request unless its id was answered within the horizon.
    fn decide_once(
        &self,
        id: &[u8],
        request: &Request<'_>,
        now: Timestamp,
    ) -> Result<Answer, RequestError> {
        let part = usize::try_from(self.id_hasher.hash_one(id)).unwrap_or(0) % ID_SHARDS;
        // Held while deciding: of two at once with the same id, one waits for the other's answer.
        let mut ids = lock(&self.request_ids[part]);
        match ids.look_up(id, request, now) {
            Known::Repeat(answer) => Ok(answer),
            Known::Reused => Err(RequestError::RequestIdReused),
            Known::New => {
                let answer = self.decide_at(request, now);
                if answer.allowed() {
                    let most = self.table.bound() / ID_SHARDS;
                    ids.remember(id, request, &answer, now.after(self.horizon), most);
                }
                Ok(answer)
            }
        }
    }

    /// Calls `visit` with the table that holds the policy's keys.
    fn with_table<T>(&self, policy: &Policy, visit: impl FnOnce(&Table) -> T) -> T {
        match policy.max_keys() {
            None => visit(&self.table),
            Some(bound) => visit(&self.own_table(policy.name(), bound)),
        }
    }

    /// The table of a policy with a bound of its own. The bound is that of the last who asks: it
    /// may have changed since the table was made, or restored.
    pub(crate) fn own_table(&self, name: &str, bound: usize) -> Arc<Table> {
        let known =
            self.own_tables.read().unwrap_or_else(|error| error.into_inner()).get(name).cloned();
        if let Some(table) = known {
            table.set_bound(bound);
            return table;
        }
        let mut tables = self.own_tables.write().unwrap_or_else(|error| error.into_inner());
        let new = || Arc::new(Table::new(bound));
        Arc::clone(tables.entry(name.into()).or_insert_with(new))
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        let tables = self.own_tables.read().unwrap_or_else(|error| error.into_inner());
        tables.values().cloned().collect()
    }

    /// What a check of a new key is told when there is no room for it.
    fn no_room(&self, retry_at: Option<u64>, cost: u64, now: Timestamp) -> Decision {
        let allowed = self.table_full == TableFull::Allow;
        let retry = retry_at.map(|at| Timestamp::from_micros(at).since(now));
        let mut decision = Decision::of_store(allowed, retry, now);
        decision.granted = if allowed { cost } else { 0 };
        decision
    }

    /// Gives memory back: looks over at most `places` places in each shard for keys that
    /// recovered a second ago or more. The table does so by itself as new keys come; a process that has none calls
    /// this now and then.
    pub fn sweep(&self, places: usize) {
        let now = self.clock.now();
        for table in self.tables().iter().map(|table| &**table).chain([&self.table]) {
            (0..table.shard_count()).for_each(|shard| table.sweep(shard, now, places));
        }
    }

    /// How full it is. Takes each shard's lock for a moment and looks at no key.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut occupancy = Usage::default();
        for table in self.tables().iter().map(|table| &**table).chain([&self.table]) {
            let counts = table.counts();
            occupancy.keys += table.keys();
            occupancy.max_keys = occupancy.max_keys.saturating_add(table.bound());
            occupancy.evicted += counts.evicted;
            occupancy.full += counts.full;
        }
        occupancy
    }

    /// How full it is, and what has happened in it. Looks at every key: not for a hot path.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        let mut stats = MemoryStats::default();
        for table in self.tables().iter().map(|table| &**table).chain([&self.table]) {
            let counts = table.counts();
            stats.keys += table.keys();
            stats.bytes += table.bytes();
            stats.evicted += counts.evicted;
            stats.full += counts.full;
            stats.disbelieved += counts.effects.disbelieved;
            stats.merged += counts.effects.merged;
        }
        stats
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::builder().build()
    }
}

impl Store for MemoryStore {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        requests.iter().map(|request| self.decide_now(request).map_err(StoreError::from)).collect()
    }
}

//! The in-memory store: a sharded table; requests are decided on the caller's thread.

mod batch;
mod blocks;
mod budget;
mod entry;
mod eviction;
mod index;
mod locked_shards;
mod policy_counts;
mod request_ids;
mod settle;
mod shard;
mod single_key;
mod slots;
mod snapshot;
mod stored_key;
mod table;
mod transaction;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tollgate_algorithms::{
    Decision, Inspection, Micros, Operation, Policy, Request, RequestError, Timestamp,
};

use crate::clock::Clock;
use crate::key::Key;
use crate::store::{Answer, Store, StoreError};
use crate::sync::{HashState, Mutex, lock};
use budget::{Budget, Usage};
use request_ids::{Lookup, Record, RequestIds, fingerprint, hash_of};
pub(crate) use shard::Shard;
use shard::ShardFull;
use single_key::may_grow;
pub(crate) use snapshot::{KeyRestore, Step};
pub(crate) use stored_key::StoredKey;
pub(crate) use table::Table;

/// The decision for a new key when the table is full and no key can be evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFull {
    /// Deny, with [`Reason::Store`](tollgate_algorithms::Reason::Store).
    #[default]
    Deny,
    /// Admit without counting.
    Allow,
}

/// The default maximum number of keys of a table.
pub const MAX_KEYS: usize = 1_000_000;
/// The default maximum number of bytes of a store: a million keys with token buckets take about 100
/// MB, and half of it is left to request ids.
pub const MAX_BYTES: usize = 256 * 1024 * 1024;
/// How long a request id is remembered by default.
pub const REQUEST_ID_HORIZON: Micros = Micros::from_secs(30);

/// The number of partitions of the request ids, each under its own lock.
const ID_PARTITIONS: u8 = 16;

/// Configures a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryStoreBuilder {
    clock: Option<Clock>,
    max_keys: usize,
    max_bytes: usize,
    table_full: TableFull,
    horizon: Micros,
}

impl MemoryStoreBuilder {
    /// Uses this clock in place of the system's, for tests and for replaying logs.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Sets the maximum number of keys, at least 1; the default is [`MAX_KEYS`].
    pub const fn max_keys(mut self, max: usize) -> Self {
        self.max_keys = max;
        self
    }

    /// Sets the maximum number of bytes of keys, blocks and request ids together; the default is
    /// [`MAX_BYTES`]. Request ids take at most half of it: beyond that the oldest are forgotten. When
    /// it is used up, keys are evicted as when the table has `max_keys` keys; if no key can be
    /// evicted, the decision for a check that needs more memory is that of a full table.
    ///
    /// The bytes are those requested from the allocator. Each thread may exceed the bound by the
    /// growth of the states of one request.
    pub const fn max_bytes(mut self, max: usize) -> Self {
        self.max_bytes = max;
        self
    }

    /// Sets what is decided for a new key when the table is full and no key can be evicted; the
    /// default is [`TableFull::Deny`].
    pub const fn table_full(mut self, decision: TableFull) -> Self {
        self.table_full = decision;
        self
    }

    /// Sets how long request ids are remembered; the default is [`REQUEST_ID_HORIZON`].
    pub const fn request_id_horizon(mut self, horizon: Micros) -> Self {
        self.horizon = horizon;
        self
    }

    /// Builds the store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        let budget = Arc::new(Budget::new(self.max_bytes));
        let partitions = usize::from(ID_PARTITIONS);
        let request_ids = || {
            let max_bytes = self.max_bytes / 2 / partitions;
            RequestIds::new(self.max_keys / partitions, max_bytes, Arc::clone(&budget))
        };
        let request_ids = (0..ID_PARTITIONS).map(|_| Mutex::new(request_ids())).collect();
        MemoryStore {
            clock: self.clock.unwrap_or_else(Clock::system),
            table: Table::new(self.max_keys.max(1), &budget),
            budget,
            shed: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            own_tables: RwLock::default(),
            copying: Mutex::default(),
            table_full: self.table_full,
            horizon: self.horizon,
            id_hasher: HashState::default(),
            request_ids,
        }
    }
}

/// A store that keeps its state in this process.
///
/// A check runs on the caller's thread under the lock of one of up to 256 shards, and allocates
/// nothing if the key is known.
///
/// # Examples
/// ```
/// use tollgate_algorithms::{Cost, Id, Policy};
/// use tollgate_state::{Key, MemoryStore};
///
/// let store = MemoryStore::builder().max_keys(10_000).build();
/// let api: Policy = "2/h".parse()?;
/// let key = Key::new("user:42")?;
/// let lease = || Id::from_u128(7);
/// assert!(store.check(&api, key, Cost::ONE, lease).allowed);
/// assert!(store.check(&api, key, Cost::ONE, lease).allowed);
/// assert!(!store.check(&api, key, Cost::ONE, lease).allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    pub(crate) table: Table,
    budget: Arc<Budget>,
    /// The next shard to evict keys from when the budget is nearly used up.
    shed: AtomicUsize,
    /// New keys for which there was no room.
    refused: AtomicU64,
    /// The tables of policies with their own `max_keys`.
    own_tables: RwLock<HashMap<Box<str>, Arc<Table>>>,
    /// Held while a snapshot copies the tables: a shard supports one copy at a time.
    pub(crate) copying: Mutex<()>,
    table_full: TableFull,
    horizon: Micros,
    id_hasher: HashState,
    request_ids: Box<[Mutex<RequestIds>]>,
}

/// How full a memory store is, and counters since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Keys in all tables.
    pub keys: usize,
    /// The maximum number of keys in all tables.
    pub max_keys: usize,
    /// Live keys evicted to make room for new ones.
    pub evicted: u64,
    /// New keys for which there was no room.
    pub full: u64,
    /// Bytes of keys and their states.
    pub key_bytes: usize,
    /// Bytes of blocks.
    pub block_bytes: usize,
    /// Bytes of request ids and their answers.
    pub request_id_bytes: usize,
    /// The maximum sum of these bytes.
    pub max_bytes: usize,
    /// States too far ahead of the clock to be plausible.
    pub implausible: u64,
    /// Log entries merged because a key exceeded the maximum length of its log.
    pub merged: u64,
}

impl MemoryStore {
    /// Returns a builder with the defaults.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            clock: None,
            max_keys: MAX_KEYS,
            max_bytes: MAX_BYTES,
            table_full: TableFull::default(),
            horizon: REQUEST_ID_HORIZON,
        }
    }

    /// Returns the store's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Executes a request synchronously.
    ///
    /// # Errors
    /// Returns an error if the request is invalid; see [`Request::validate`].
    pub fn decide_now(&self, request: &Request<'_>) -> Result<Answer, RequestError> {
        request.validate_for_store()?;
        let now = self.clock.now();
        match request.request_id.filter(|_| request.operation != Operation::Peek) {
            Some(id) => self.decide_once(id, request, now),
            None => Ok(self.decide_at(request, now)),
        }
    }

    /// Executes a request, unless its id was answered within the horizon.
    fn decide_once(
        &self,
        id: &[u8],
        request: &Request<'_>,
        now: Timestamp,
    ) -> Result<Answer, RequestError> {
        let (id, fingerprint) = (hash_of(id), fingerprint(request));
        #[expect(clippy::expect_used, reason = "the remainder is below ID_PARTITIONS")]
        let partition = usize::try_from(self.id_hasher.hash_one(id) % u64::from(ID_PARTITIONS))
            .expect("a partition fits usize");
        // Held while deciding, so that of two concurrent requests with one id the second waits for
        // the answer to the first.
        let mut ids = lock(&self.request_ids[partition]);
        if request.operation == Operation::Settle {
            return self.settle(&mut ids, &id, request, now);
        }
        match ids.look_up(&id, &fingerprint, now) {
            Lookup::Repeat(answer) => Ok(answer),
            Lookup::Reused => Err(RequestError::RequestIdReused),
            Lookup::New => {
                let answer = self.decide_at(request, now);
                if answer.allowed() {
                    let expires_at = now.saturating_add(self.horizon);
                    ids.record(id, Record::new(request, fingerprint, &answer, expires_at));
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

    /// Returns the table of a policy with its own `max_keys`. The table takes on the bound, which
    /// may have changed since the table was created or restored.
    pub(crate) fn own_table(&self, name: &str, bound: usize) -> Arc<Table> {
        let known =
            self.own_tables.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(table) = known {
            table.set_bound(bound);
            return table;
        }
        let mut tables = self.own_tables.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Table::new(bound, &self.budget));
        Arc::clone(tables.entry(name.into()).or_insert_with(new))
    }

    /// Returns the tables of policies with their own `max_keys`, by name.
    pub(crate) fn own_tables(&self) -> Vec<(Box<str>, Arc<Table>)> {
        let tables = self.own_tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect()
    }

    fn for_each_table(&self, mut visit: impl FnMut(&Table)) {
        visit(&self.table);
        self.own_tables().iter().for_each(|(_, table)| visit(table));
    }

    /// Evicts keys of as many other shards as there are checks, if the budget is nearly used up and
    /// the operation may need more.
    fn reclaim(&self, operation: &Operation, checks: usize, now: Timestamp) {
        /// The number of shards to search, so that a single request does not search all.
        const SHARDS: usize = 8;
        let may_grow = may_grow(operation) || matches!(operation, Operation::Block { .. });
        if !may_grow || !self.budget.is_nearly_used_up() {
            return;
        }
        let own_tables = self.own_tables();
        let own_tables = own_tables.iter().map(|(_, table)| &**table);
        let tables: Vec<_> = std::iter::once(&self.table).chain(own_tables).collect();
        let shards: usize = tables.iter().map(|table| table.shard_count()).sum();
        let mut evicted = 0;
        for _ in 0..SHARDS.max(checks) {
            let mut index = self.shed.fetch_add(1, Ordering::Relaxed) % shards;
            for table in &tables {
                let Some(next) = index.checked_sub(table.shard_count()) else {
                    evicted += usize::from(table.lock(index).shed(now));
                    break;
                };
                index = next;
            }
            if evicted >= checks || evicted > 0 && !self.budget.is_nearly_used_up() {
                return;
            }
        }
    }

    /// Decides a check that needs more room or memory than there is.
    fn decide_without_room(&self, full: ShardFull, cost: u64, now: Timestamp) -> Decision {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let allowed = self.table_full == TableFull::Allow;
        let retry = full.retry_at.map(|at| Timestamp::from_micros(at).duration_since(now));
        let mut decision = Decision::from_store(allowed, retry, now);
        decision.granted = if allowed { cost } else { 0 };
        decision
    }

    /// Frees the memory of expired request ids, and of keys that recovered at least a second ago
    /// among the next `slots` slots of each table, at least one of each shard. Inserting new keys
    /// frees the memory of keys, so only an idle process, or one with request ids, needs to call this.
    pub fn sweep(&self, slots: usize) {
        let now = self.clock.now();
        self.for_each_table(|table| {
            let count = table.shard_count();
            (0..count).for_each(|shard| table.sweep(shard, now, slots.div_ceil(count)));
        });
        self.request_ids.iter().for_each(|ids| lock(ids).sweep(now));
    }

    /// Returns how full the store is, and counters. Locks each shard briefly, and reads no keys.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        let mut stats = MemoryStats::default();
        self.for_each_table(|table| {
            let counts = table.counts();
            stats.keys += table.keys();
            stats.max_keys = stats.max_keys.saturating_add(table.bound());
            stats.evicted += counts.evicted;
            stats.implausible += counts.anomalies.implausible;
            stats.merged += counts.anomalies.merged;
        });
        let Usage { keys, blocks, request_ids } = self.budget.usage();
        stats.full = self.refused.load(Ordering::Relaxed);
        stats.key_bytes = keys;
        stats.block_bytes = blocks;
        stats.request_id_bytes = request_ids;
        stats.max_bytes = self.budget.max();
        stats
    }

    /// Returns the bytes allocated for keys, blocks and request ids.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Usage { keys, blocks, request_ids } = self.budget.usage();
        keys + blocks + request_ids
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

    async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        Ok(MemoryStore::inspect(self, policy, key))
    }
}

//! Usage tracking: what policies record about their keys, and queries of it.
//!
//! A decision is added to a log of its thread ([`Insight::record`]), without waiting and without an
//! allocation. A task ([`Insight::run`]) regularly moves the logs to the storage: the memory of this
//! process, or Redis. Queries ([`Insight::keys`], [`Insight::key`]) read the storage.
//! Recording changes no decision, and a storage that fails delays none.

mod cursors;
mod memory;
mod observe;
mod query;
mod record;
mod recorder;
mod redis;
mod stats;
mod tally;
mod tracked;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollgate::{Limiter, MemoryLimiter, Timestamp};
use tollgate_config::Track;
use tollgate_state::{Clock, Failure};

pub use observe::{
    CounterPattern, ObserveError, ObserveOptions, ObserveReport, Observer, PatternError,
};
pub use query::{KeysQuery, MAX_PAGE, Order, Page, QueryError};
pub use record::{
    Interval, KeyRecord, KeyUsage, MAX_KEY_BYTES, MAX_NOTE_BYTES, MAX_TOTAL, Note, NoteAnswer,
    Timeline, Usage,
};
pub use recorder::TrackedDecision;
pub use stats::InsightStats;
pub use tracked::{TrackTable, Tracked};

use cursors::Cursors;
use memory::MemoryStorage;
use recorder::Recorder;
use redis::RedisStorage;
use stats::Counters;

/// How often the logs of all threads are taken.
const DRAIN_INTERVAL: Duration = Duration::from_millis(250);
/// How often records are written to Redis.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The delay before a write is retried while the process exits.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Where records are.
#[derive(Debug)]
enum Storage {
    Memory(MemoryStorage),
    Redis(Box<RedisStorage>),
}

/// What policies track about their keys.
#[derive(Debug)]
pub struct Insight {
    /// Allocated when the first policy tracks something.
    recorder: OnceLock<Recorder>,
    storage: Storage,
    table: RwLock<TrackTable>,
    /// The number of each policy that has ever tracked something.
    ids: Mutex<HashMap<Box<str>, u32>>,
    cursors: Cursors,
    counters: Counters,
    limiter: Limiter,
    clock: Clock,
}

impl Insight {
    /// Tracks nothing yet. Records will be on Redis if that is the store, and otherwise in memory.
    #[must_use]
    pub fn new(limiter: &Limiter) -> Self {
        Insight {
            recorder: OnceLock::new(),
            storage: match limiter.as_redis() {
                Some(store) => Storage::Redis(Box::new(RedisStorage::new(store.clone()))),
                None => Storage::Memory(MemoryStorage::default()),
            },
            table: RwLock::default(),
            ids: Mutex::default(),
            cursors: Cursors::default(),
            counters: Counters::default(),
            limiter: limiter.clone(),
            clock: Clock::system(),
        }
    }

    /// The current time: the memory store's clock, or with Redis the system's, which may differ slightly
    /// from the server's.
    fn now(&self) -> Timestamp {
        self.limiter.as_memory().map_or_else(|| self.clock.now(), MemoryLimiter::now)
    }

    /// Tracks what a configuration states, from now on. Policies that were tracked before keep their
    /// records.
    pub fn configure(&self, tracks: &BTreeMap<String, Track>) -> TrackTable {
        if !tracks.is_empty() {
            self.recorder.get_or_init(Recorder::new);
        }
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let table = TrackTable::new(tracks, |name| {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            *ids.entry(name.into()).or_insert(next)
        });
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table.clone();
        table
    }

    fn table(&self) -> TrackTable {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a decision. Never waits and never allocates.
    #[inline]
    pub fn record(&self, tracked: &Tracked, decision: &TrackedDecision<'_>) {
        if let Some(recorder) = self.recorder.get() {
            recorder.record(tracked, decision, &self.counters);
        }
    }

    /// Writes what was recorded, until the task is dropped.
    pub async fn run(&self) {
        tokio::join!(self.drain_repeatedly(), self.flush_repeatedly());
    }

    async fn drain_repeatedly(&self) {
        let mut ticks = interval(DRAIN_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.recorder.get() {
                Some(recorder) => tokio::select! {
                    _ = ticks.tick() => {}
                    () = recorder.is_filling.notified() => {}
                },
                None => drop(ticks.tick().await),
            }
            self.drain();
            if let Storage::Memory(memory) = &self.storage {
                memory.sweep(&self.table(), self.now(), &self.counters);
            }
        }
    }

    /// Writes to Redis. Failures are logged when they begin and when they end.
    async fn flush_repeatedly(&self) {
        let Storage::Redis(redis) = &self.storage else { return };
        let mut ticks = interval(FLUSH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = false;
        loop {
            ticks.tick().await;
            let result = redis.flush(&self.table(), &self.counters, false).await;
            log_outage(&mut is_failing, &result, "usage of keys");
        }
    }

    /// Writes what was recorded, before the process exits. Returns the number of decisions that could
    /// not be written in time.
    pub async fn close(&self, timeout: Duration) -> u64 {
        // Records in memory end with the process.
        let Storage::Redis(redis) = &self.storage else { return 0 };
        self.drain();
        let table = self.table();
        let write = async {
            while redis.unwritten().await > 0 {
                if redis.flush(&table, &self.counters, true).await.is_err() {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        };
        // What is not written in time is counted.
        let _ = tokio::time::timeout(timeout, write).await;
        redis.unwritten().await
    }

    /// Moves what the threads have recorded to the storage.
    fn drain(&self) {
        let Some(recorder) = self.recorder.get() else { return };
        let table = self.table();
        recorder.drain(|log| match &self.storage {
            Storage::Memory(memory) => memory.add(&table, log, &self.counters),
            Storage::Redis(redis) => redis.add(&table, log, &self.counters),
        });
    }

    /// The policies that track something.
    #[must_use]
    pub fn tracked(&self) -> Vec<Arc<Tracked>> {
        self.table().iter().map(Arc::clone).collect()
    }

    /// The numbers of metrics.
    #[must_use]
    pub fn stats(&self) -> InsightStats {
        self.counters.stats()
    }

    fn tracked_policy(&self, policy: &str) -> Result<Arc<Tracked>, QueryError> {
        let table = self.table();
        let tracked = table.by_name(policy).map(Arc::clone);
        tracked.ok_or_else(|| QueryError::NotTracked(policy.into()))
    }

    /// The keys of a policy in an order, page by page.
    ///
    /// # Errors
    /// The policy does not track what the query needs, an argument is invalid, or the store failed.
    pub async fn keys(&self, query: KeysQuery<'_>) -> Result<Page, QueryError> {
        let tracked = self.tracked_policy(query.policy)?;
        if !(1..=MAX_PAGE).contains(&query.limit) {
            return Err(QueryError::Limit(query.limit));
        }
        if query.prefix.len() > MAX_KEY_BYTES {
            return Err(QueryError::Prefix(query.prefix.len()));
        }
        if query.order.needs_usage() && !tracked.track.usage {
            return Err(QueryError::NoUsage(query.policy.into(), query.order));
        }
        let after = self.cursors.position(&query)?;
        let now = self.now();
        let (keys, end) = match &self.storage {
            Storage::Memory(memory) => {
                self.drain();
                memory.keys(&tracked, &query, after.as_ref(), now)
            }
            Storage::Redis(redis) => redis
                .keys(&tracked, &query, after.as_ref(), now)
                .await
                .map_err(QueryError::Unavailable)?,
        };
        let next = end.map(|position| self.cursors.add(&query, position));
        Ok(Page { keys, next })
    }

    /// Everything that is recorded about a key; absent if nothing is.
    ///
    /// # Errors
    /// The policy tracks nothing, or the store failed.
    pub async fn key(&self, policy: &str, key: &[u8]) -> Result<Option<KeyRecord>, QueryError> {
        let tracked = self.tracked_policy(policy)?;
        let now = self.now();
        match &self.storage {
            Storage::Memory(memory) => {
                self.drain();
                Ok(memory.key(&tracked, key, now))
            }
            Storage::Redis(redis) => {
                redis.key(&tracked, key, now).await.map_err(QueryError::Unavailable)
            }
        }
    }
}

/// Logs failures to write when they begin and when they end.
fn log_outage(is_failing: &mut bool, result: &Result<(), Failure>, subject: &str) {
    let was_failing = std::mem::replace(is_failing, result.is_err());
    match result {
        Err(failure) if !was_failing => {
            tracing::warn!("{subject} not written, retrying: {failure}");
        }
        Ok(()) if was_failing => tracing::info!("{subject} written again"),
        _ => {}
    }
}

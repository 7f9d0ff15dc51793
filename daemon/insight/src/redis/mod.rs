//! Records on Redis, beside the keys of the limits.
//!
//! A record is one hash in the partition of its key; each policy has three sorted sets per partition, by
//! time, by requests and by denials. Decisions are added up here, and written in batches. The batches of
//! a partition are numbered and sent one after the other: the server skips one that it has executed
//! already, so that a batch whose reply was lost is sent again.

mod arguments;
mod observed;
mod pending;
mod read;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;
use tollgate::random_id;
use tollgate_redis::{RedisStore, Script, ScriptReply};
use tollgate_state::{Failure, FailureKind};

use crate::recorder::{BATCH, Log};
use crate::stats::Counters;
use crate::tracked::{TrackTable, Tracked};
pub(crate) use arguments::Arguments;
pub(crate) use observed::{StoredState, Totals, WriteOutcome};
use pending::Pending;
pub(crate) use pending::{PendingKey, StateChange};

static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("write.lua")));

/// The kind of the names of records. Another format gets another name.
const RECORD_KIND: &str = "r";

/// The most keys in a batch. It takes the server about a millisecond, during which it decides nothing.
const MAX_BATCH: usize = 32;
/// How long a batch is retried. Then its decisions are dropped and counted.
const MAX_AGE: Duration = Duration::from_secs(60);
/// How long the server remembers a writer, in ms: longer than a batch is retried.
const WRITER_TTL: u32 = 3_600_000;

/// Keys and what waits for them.
type Records = Vec<(Box<[u8]>, PendingKey)>;

/// A batch of one policy for one partition.
#[derive(Debug)]
struct Batch {
    keys: Vec<Vec<u8>>,
    arguments: Arguments,
    /// The decisions that it adds up.
    decisions: u64,
    since: Instant,
    was_sent: bool,
}

/// The batches of a partition that the server has not confirmed.
#[derive(Debug, Default)]
struct PartitionQueue {
    /// The number of the last batch.
    last: u64,
    batches: VecDeque<Batch>,
}

/// Writes records to Redis, and reads them.
#[derive(Debug)]
pub(crate) struct RedisStorage {
    store: RedisStore,
    /// Distinguishes this process from other writers.
    writer: String,
    pending: Mutex<Pending>,
    queues: tokio::sync::Mutex<HashMap<u16, PartitionQueue>>,
    /// The batches of an observer so far.
    observed_batches: AtomicU64,
}

impl RedisStorage {
    pub(crate) fn new(store: RedisStore) -> Self {
        let writer = random_id().to_string();
        let (pending, queues, observed_batches) = Default::default();
        RedisStorage { store, writer, pending, queues, observed_batches }
    }

    /// Adds decisions to those that the next flush writes.
    pub(crate) fn add(&self, table: &TrackTable, log: &Log, counters: &Counters) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut probes = Vec::with_capacity(BATCH);
        for batch in log.batches() {
            pending.find(batch.clone(), &mut probes);
            for ((id, decision), probe) in batch.zip(&probes) {
                // The policy may have been reloaded without `track` since.
                if let Some(tracked) = table.by_id(id)
                    && !pending.add(*probe, tracked, &decision)
                {
                    counters.dropped_store.increment();
                }
            }
        }
        counters.pending_keys.set(u64::try_from(pending.len()).unwrap_or(u64::MAX));
    }

    /// Writes what is pending: all of it, or as much as the decisions since the last flush permit. What
    /// the server does not confirm is kept for the next flush.
    ///
    /// # Errors
    /// The first failure of a partition.
    pub(crate) async fn flush(
        &self,
        table: &TrackTable,
        counters: &Counters,
        writes_all: bool,
    ) -> Result<(), Failure> {
        let mut queues = self.queues.lock().await;
        self.form_batches(table, &mut queues, writes_all);
        let mut sends: FuturesUnordered<_> = queues
            .iter_mut()
            .filter(|(_, queue)| !queue.batches.is_empty())
            .map(|(partition, queue)| self.send(*partition, queue, counters))
            .collect();
        let mut result = Ok(());
        while let Some(sent) = sends.next().await {
            result = result.and(sent);
        }
        result
    }

    /// Forms batches for the partitions that have none. Others wait, and add up meanwhile.
    fn form_batches(
        &self,
        table: &TrackTable,
        queues: &mut HashMap<u16, PartitionQueue>,
        writes_all: bool,
    ) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |queues: &HashMap<u16, PartitionQueue>, partition| {
            queues.get(&partition).is_none_or(|queue: &PartitionQueue| queue.batches.is_empty())
        };
        let mut groups: HashMap<(u16, u32), Records> = HashMap::new();
        let budget = if writes_all { usize::MAX } else { pending.budget() };
        let taken = pending.take(budget, |policy, key| {
            let partition = self.store.partition_of(key);
            is_free(queues, partition).then_some((partition, policy))
        });
        drop(pending);
        for (group, key, record) in taken {
            groups.entry(group).or_default().push((key, record));
        }
        for ((partition, policy), records) in groups {
            let Some(tracked) = table.by_id(policy) else { continue };
            let queue = queues.entry(partition).or_default();
            for records in records.chunks(MAX_BATCH) {
                queue.last += 1;
                queue.batches.push_back(self.batch(partition, tracked, queue.last, records));
            }
        }
    }

    fn batch(
        &self,
        partition: u16,
        tracked: &Tracked,
        number: u64,
        records: &[(Box<[u8]>, PendingKey)],
    ) -> Batch {
        let track = &tracked.track;
        let name = |policy: &str, kind: &str, text: &[u8]| {
            self.store.extension_name(partition, policy, kind, text)
        };
        let mut keys = vec![name("", "w", self.writer.as_bytes())];
        keys.extend(self.indexes(partition, tracked));
        let intervals = track.timeline.map_or(1, |timeline| u64::from(timeline.intervals));
        let length = (tracked.interval / 1_000_000).max(1);
        // Each partition has its part of the keys, and some more for those that are unevenly divided.
        let partitions = usize::from(self.store.partition_count());
        let max_keys = match partitions {
            1 => track.max_keys,
            _ => track.max_keys.div_ceil(partitions) * 5 / 4 + 8,
        };
        let mut arguments = Arguments::default();
        arguments.push_text(number);
        arguments.push(&name(&tracked.name, RECORD_KIND, b""));
        arguments.push_text(track.keep.as_millis());
        arguments.push_text(max_keys);
        arguments.push_text(track.recent.max(1));
        arguments.push_text(intervals);
        arguments.push_text(length);
        arguments.push_text(u8::from(track.usage));
        arguments.push_text(WRITER_TTL);
        arguments.push_text(u8::from(records.iter().any(|(_, record)| record.has_state())));
        let mut decisions = 0;
        for (key, record) in records {
            keys.push(name(&tracked.name, RECORD_KIND, key));
            record.write(&mut arguments);
            decisions += record.decisions();
        }
        Batch { keys, arguments, decisions, since: Instant::now(), was_sent: false }
    }

    /// The names of the indexes by time, by requests and by denials.
    fn indexes(&self, partition: u16, tracked: &Tracked) -> [Vec<u8>; 3] {
        ["seen", "used", "denied"]
            .map(|index| self.store.extension_name(partition, &tracked.name, "i", index.as_bytes()))
    }

    /// Sends the batches of a partition in order, until one fails.
    async fn send(
        &self,
        partition: u16,
        queue: &mut PartitionQueue,
        counters: &Counters,
    ) -> Result<(), Failure> {
        while let Some(batch) = queue.batches.front_mut() {
            if batch.since.elapsed() > MAX_AGE {
                counters.dropped_store.add(batch.decisions);
                queue.batches.pop_front();
                continue;
            }
            if std::mem::replace(&mut batch.was_sent, true) {
                counters.retried.increment();
            }
            match self.run_batch(partition, batch).await? {
                ScriptReply::Integer(evicted) => {
                    counters.evicted.add(u64::try_from(evicted).unwrap_or_default());
                }
                _ => return Err(malformed()),
            }
            queue.batches.pop_front();
        }
        Ok(())
    }

    async fn run_batch(&self, partition: u16, batch: &Batch) -> Result<ScriptReply, Failure> {
        let arguments = batch.arguments.slices();
        self.store.run_script(partition, &WRITE, &batch.keys, &arguments).await
    }

    /// The decisions that are not written yet.
    pub(crate) async fn unwritten(&self) -> u64 {
        let queues = self.queues.lock().await;
        let batches = queues.values().flat_map(|queue| &queue.batches);
        let queued: u64 = batches.map(|batch| batch.decisions).sum();
        queued + self.pending.lock().unwrap_or_else(PoisonError::into_inner).decisions()
    }
}

fn malformed() -> Failure {
    Failure::new(FailureKind::Protocol, "a script of usage returned a malformed reply")
}

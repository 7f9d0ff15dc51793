//! Records that an observer writes.
//!
//! A record then has the state from which its totals were computed. A write names the state that it
//! continues, so that of two observers only one can continue it, and a write whose reply was lost is
//! recognized.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tollgate_redis::{Script, ScriptReply};
use tollgate_state::Failure;

use super::pending::PendingKey;
use super::read::{self, optional_words, words};
use super::{MAX_BATCH, RECORD_KIND, Records, RedisStorage, malformed};
use crate::tracked::Tracked;

static STATE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("state.lua")));

/// The totals of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) allowed: u64,
    /// The time of the last request in µs.
    pub(crate) last: u64,
}

/// The state of an observer in a record, and the totals; empty and 0 without a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredState {
    pub(crate) state: Vec<u8>,
    pub(crate) totals: Totals,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// The record has the write, and these totals.
    Confirmed(Totals),
    /// Another observer has written the record.
    Conflict,
    /// The record was evicted or has expired.
    Evicted,
}

/// The outcomes of writes by key.
type WriteResults = Vec<(Box<[u8]>, Result<WriteOutcome, Failure>)>;

impl RedisStorage {
    /// Reads the states of keys. Returns those that can be read, and the first failure.
    pub(crate) async fn states(
        &self,
        tracked: &Tracked,
        keys: &[Box<[u8]>],
    ) -> (Vec<(Box<[u8]>, StoredState)>, Result<(), Failure>) {
        let mut groups: HashMap<u16, Vec<&[u8]>> = HashMap::new();
        for key in keys {
            groups.entry(self.store.partition_of(key)).or_default().push(key);
        }
        let calls = groups.iter().flat_map(|(partition, keys)| {
            keys.chunks(MAX_BATCH).map(|keys| self.states_in(*partition, tracked, keys))
        });
        let mut states = Vec::with_capacity(keys.len());
        let mut result = Ok(());
        for found in join_all(calls).await {
            match found {
                Ok(found) => states.extend(found),
                Err(failure) => result = result.and(Err(failure)),
            }
        }
        (states, result)
    }

    async fn states_in(
        &self,
        partition: u16,
        tracked: &Tracked,
        keys: &[&[u8]],
    ) -> Result<Vec<(Box<[u8]>, StoredState)>, Failure> {
        let name =
            |key: &&[u8]| self.store.extension_name(partition, &tracked.name, RECORD_KIND, key);
        let names: Vec<_> = keys.iter().map(name).collect();
        let reply = self.store.run_script(partition, &STATE, &names, &[]).await?;
        let ScriptReply::List(rows) = reply else { return Err(malformed()) };
        if rows.len() != keys.len() {
            return Err(malformed());
        }
        let states = keys.iter().zip(rows).map(|(key, row)| Ok((Box::from(*key), state(row)?)));
        states.collect()
    }

    /// Writes what was counted for keys. If a write fails, its outcome is unknown: repeat it unchanged.
    /// Calls must not overlap, because the server skips batches that arrive out of order.
    pub(crate) async fn write_observed(&self, tracked: &Tracked, records: Records) -> WriteResults {
        let mut groups: HashMap<u16, Records> = HashMap::new();
        for (key, record) in records {
            groups.entry(self.store.partition_of(&key)).or_default().push((key, record));
        }
        let calls = groups.iter().map(|(partition, records)| async move {
            let mut results = WriteResults::new();
            for records in records.chunks(MAX_BATCH) {
                let result = self.write_batch(*partition, tracked, records).await;
                let keys = records.iter().map(|(key, _)| key.clone());
                match result {
                    Ok(outcomes) => results.extend(keys.zip(outcomes.into_iter().map(Ok))),
                    Err(failure) => results.extend(keys.map(|key| (key, Err(failure.clone())))),
                }
            }
            results
        });
        join_all(calls).await.into_iter().flatten().collect()
    }

    /// Writes a batch. Returns the outcome of each record.
    async fn write_batch(
        &self,
        partition: u16,
        tracked: &Tracked,
        records: &[(Box<[u8]>, PendingKey)],
    ) -> Result<Vec<WriteOutcome>, Failure> {
        let number = self.observed_batches.fetch_add(1, Ordering::Relaxed) + 1;
        let batch = self.batch(partition, tracked, number, records);
        let reply = self.run_batch(partition, &batch).await?;
        let ScriptReply::List(mut list) = reply else { return Err(malformed()) };
        let totals = words(ScriptReply::List(list.split_off(1.min(list.len()))))?;
        let (pairs, rest) = totals.as_chunks::<2>();
        if pairs.len() != records.len() || !rest.is_empty() {
            return Err(malformed());
        }
        let outcome = |[allowed, last]: &[Vec<u8>; 2]| match &allowed[..] {
            b"-1" => Ok(WriteOutcome::Conflict),
            b"-2" => Ok(WriteOutcome::Evicted),
            allowed => {
                let (allowed, last) = (read::number(allowed)?, read::number(last)?);
                Ok(WriteOutcome::Confirmed(Totals { allowed, last }))
            }
        };
        pairs.iter().map(outcome).collect()
    }
}

fn state(row: ScriptReply) -> Result<StoredState, Failure> {
    let fields = optional_words(row)?;
    let [state, times, counts] = <[_; 3]>::try_from(fields).map_err(|_| malformed())?;
    let totals = match (times, counts) {
        (Some(times), Some(counts)) => {
            let usage = read::usage(&times, &counts)?;
            Totals { allowed: usage.allowed, last: usage.last_seen.as_micros() }
        }
        _ => Totals::default(),
    };
    Ok(StoredState { state: state.unwrap_or_default(), totals })
}

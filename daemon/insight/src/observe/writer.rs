//! Writes what was counted to the store, and the totals beside the counters.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use futures_util::future::join_all;
use tollgate_redis::{Script, Subscription};
use tollgate_store::{Failure, FailureKind};

use super::Shared;
use super::key::{KeyState, Totals};
use crate::redis::{RedisStorage, StoredState};

static COPY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("copy.lua")));

/// The most records of a write, and the most copies that are sent at once.
const MAX_WRITES: usize = 16_384;
const MAX_COPIES: usize = 128;

/// The keys that are known.
pub(super) type Keys = HashMap<Box<[u8]>, KeyState, RandomState>;

/// Writes for one server.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    storage: RedisStorage,
    /// The number of writes.
    number: u64,
    is_failing: bool,
}

impl Writer {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let storage = RedisStorage::new(shared.store.clone());
        Writer { shared: Arc::clone(shared), storage, number: 0, is_failing: false }
    }

    /// Reads the records of keys.
    pub(super) async fn states(
        &self,
        keys: &[Box<[u8]>],
    ) -> Result<Vec<(Box<[u8]>, StoredState)>, Failure> {
        self.storage.states(&self.shared.tracked, keys).await
    }

    /// Writes what was counted. Writes that fail are repeated by the next call. Returns the counters to
    /// read again, because another observer has written their keys.
    pub(super) async fn write(&mut self, keys: &mut Keys) -> Vec<Box<[u8]>> {
        let mut records = Vec::new();
        for (key, state) in &mut *keys {
            let version = format!("{}.{}", self.shared.observer, self.number);
            if let Some(record) = state.write(&version) {
                self.number += 1;
                records.push((key.clone(), record));
            }
            if records.len() == MAX_WRITES {
                break;
            }
        }
        let mut result = Ok(());
        let mut again = Vec::new();
        for (key, written) in self.storage.write_observed(&self.shared.tracked, records).await {
            let Some(state) = keys.get_mut(&key) else { continue };
            match written {
                Ok(Some(totals)) => state.confirm(totals),
                Ok(None) => {
                    let mut report = self.shared.report.lock();
                    report.conflicts += 1;
                    // It is counted again, from the record that the other observer has written.
                    report.increments = report.increments.saturating_sub(state.unwritten());
                    again.extend(state.names().map(Box::from));
                    keys.remove(&key);
                }
                Err(failure) => result = Err(failure),
            }
        }
        self.note(&result);
        again
    }

    /// Logs failures of the store when they begin and when they end.
    pub(super) fn note(&mut self, result: &Result<(), Failure>) {
        let was_failing = std::mem::replace(&mut self.is_failing, result.is_err());
        match result {
            Err(failure) if !was_failing => {
                tracing::warn!("totals not written, retrying: {failure}");
            }
            Ok(()) if was_failing => tracing::info!("totals are written again"),
            _ => {}
        }
    }

    /// Copies totals into the hashes beside the counters.
    pub(super) async fn copy(
        &self,
        subscription: &Subscription,
        keys: &mut Keys,
    ) -> Result<(), Failure> {
        let uncopied = keys.iter().filter_map(|(key, state)| Some((key.clone(), state.uncopied?)));
        let totals: Vec<(Box<[u8]>, Totals)> = uncopied.collect();
        for totals in totals.chunks(MAX_COPIES) {
            let copies =
                totals.iter().map(|(key, totals)| self.copy_key(subscription, key, *totals));
            for ((key, _), copied) in totals.iter().zip(join_all(copies).await) {
                copied?;
                if let Some(state) = keys.get_mut(key) {
                    state.uncopied = None;
                }
            }
        }
        Ok(())
    }

    async fn copy_key(
        &self,
        subscription: &Subscription,
        key: &[u8],
        (total, last): Totals,
    ) -> Result<(), Failure> {
        let shared = &self.shared;
        let name = shared.pattern.data_name(shared.store.namespace(), key);
        let arguments =
            [total.into(), (last / 1_000).into(), shared.tracked.track.keep.as_millis()];
        let arguments = arguments.map(|number: u128| number.to_string().into_bytes());
        match subscription.run_script(&COPY, &[name], &arguments).await {
            Ok(_) => Ok(()),
            // The observer of the server that has the slot now copies the totals.
            Err(failure) if is_elsewhere(failure.kind) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

fn is_elsewhere(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::WrongTopology | FailureKind::TryAgain | FailureKind::ReadOnly)
}

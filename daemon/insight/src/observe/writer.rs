//! Writes what was counted to the store, and the totals beside the counters.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use futures_util::future::join_all;
use tollgate::random_id;
use tollgate_redis::{Script, Subscription};
use tollgate_state::{Failure, FailureKind};

use super::Shared;
use super::key::KeyState;
use crate::log_outage;
use crate::redis::{RedisStorage, StoredState, Totals, WriteOutcome};

static COPY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("copy.lua")));

/// The most copies that are sent at once.
const MAX_COPIES: usize = 128;

/// The keys that are known.
pub(super) type Keys = HashMap<Box<[u8]>, KeyState, RandomState>;

/// Writes for one server.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    storage: RedisStorage,
    /// Distinguishes the writes of this writer from all others, with their number.
    id: String,
    number: u64,
    is_failing: bool,
    is_copy_failing: bool,
}

impl Writer {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let storage = RedisStorage::new(shared.store.clone());
        let (shared, id) = (Arc::clone(shared), random_id().to_string());
        Writer { shared, storage, id, number: 0, is_failing: false, is_copy_failing: false }
    }

    /// Reads the records of keys, and returns the first failure.
    pub(super) async fn states(
        &self,
        keys: &[Box<[u8]>],
    ) -> (Vec<(Box<[u8]>, StoredState)>, Result<(), Failure>) {
        self.storage.states(&self.shared.tracked, keys).await
    }

    /// Writes what was counted. Writes that fail are repeated by the next call. Returns the counters to
    /// read again, because another observer has written their keys.
    pub(super) async fn write(&mut self, keys: &mut Keys) -> Vec<Box<[u8]>> {
        let mut records = Vec::new();
        for (key, state) in &mut *keys {
            let version = format!("{}.{}", self.id, self.number);
            if let Some(record) = state.write(&version) {
                self.number += 1;
                records.push((key.clone(), record));
            }
        }
        if records.is_empty() {
            return Vec::new();
        }
        let mut result = Ok(());
        let mut again = Vec::new();
        for (key, outcome) in self.storage.write_observed(&self.shared.tracked, records).await {
            let Some(state) = keys.get_mut(&key) else { continue };
            match outcome {
                Ok(WriteOutcome::Confirmed(totals)) => state.confirm(totals),
                Ok(WriteOutcome::Conflict) => {
                    let mut report = self.shared.report.lock();
                    report.conflicts += 1;
                    // It is counted again, from the record that the other observer has written.
                    report.increments = report.increments.saturating_sub(state.unwritten());
                    again.extend(state.names().map(Box::from));
                    keys.remove(&key);
                }
                Ok(WriteOutcome::Evicted) => {
                    self.shared.report.lock().evicted += 1;
                    state.begin_record();
                }
                Err(failure) => result = Err(failure),
            }
        }
        self.log(&result);
        again
    }

    pub(super) fn log(&mut self, result: &Result<(), Failure>) {
        log_outage(&mut self.is_failing, result, "totals");
    }

    /// Copies totals into the hashes beside the counters. The next call repeats copies that fail.
    pub(super) async fn copy(&mut self, subscription: &Subscription, keys: &mut Keys) {
        let uncopied = keys.iter().filter_map(|(key, state)| Some((key.clone(), state.uncopied?)));
        let totals: Vec<(Box<[u8]>, Totals)> = uncopied.collect();
        let mut result = Ok(());
        for totals in totals.chunks(MAX_COPIES) {
            let copies =
                totals.iter().map(|(key, totals)| self.copy_key(subscription, key, *totals));
            for ((key, _), copied) in totals.iter().zip(join_all(copies).await) {
                match copied {
                    Ok(()) => {
                        if let Some(state) = keys.get_mut(key) {
                            state.uncopied = None;
                        }
                    }
                    Err(failure) => result = Err(failure),
                }
            }
        }
        if !totals.is_empty() {
            log_outage(&mut self.is_copy_failing, &result, "totals beside the counters");
        }
    }

    async fn copy_key(
        &self,
        subscription: &Subscription,
        key: &[u8],
        totals: Totals,
    ) -> Result<(), Failure> {
        let shared = &self.shared;
        let name = shared.pattern.data_name(shared.store.namespace(), key);
        let arguments = [
            totals.allowed.into(),
            (totals.last / 1_000).into(),
            shared.tracked.track.keep.as_millis(),
        ];
        let arguments = arguments.map(|number: u128| number.to_string());
        let arguments = arguments.each_ref().map(String::as_bytes);
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

#[cfg(test)]
mod tests {
    use super::super::counter::Reading;
    use super::*;
    use crate::tracked::Tracked;
    use tollgate_config::Layers;
    use tollgate_redis::{RedisOptions, RedisStore};
    use tollgate_state::Clock;
    use tollgate_testkit::Server;

    const KEY: &[u8] = b"k";

    /// An observer of one key.
    struct Observer {
        name: &'static str,
        storage: RedisStorage,
        tracked: Tracked,
        key: KeyState,
        writes: u32,
    }

    impl Observer {
        async fn start(name: &'static str, server: &Server) -> Self {
            let store = RedisStore::open(&server.url(), RedisOptions::default()).unwrap();
            store.ready().await.unwrap();
            let yaml = "policies: { api: { limits: [1/s], track: { usage: true } } }";
            let layers = Layers::new().named_yaml("tollgate.yaml", yaml);
            let tracked = Tracked::new(0, "api", &layers.read().unwrap().config.tracks["api"]);
            let storage = RedisStorage::new(store);
            let key = KeyState::new(StoredState::default());
            Observer { name, storage, tracked, key, writes: 0 }
        }

        async fn reload(&mut self) {
            let (mut states, result) = self.storage.states(&self.tracked, &[KEY.into()]).await;
            result.unwrap();
            self.key = KeyState::new(states.remove(0).1);
        }

        /// Reads a value of the counter, and writes how much it has risen.
        async fn count(&mut self, value: u64) -> WriteOutcome {
            let now = Clock::system().now().as_micros() / 1_000;
            let reading = Reading { value, expiry: None, now, events: 0 };
            self.key.apply_reading(b"k:1", reading, &self.tracked);
            self.write().await
        }

        async fn write(&mut self) -> WriteOutcome {
            self.writes += 1;
            let record = self.key.write(&format!("{}.{}", self.name, self.writes)).unwrap();
            let records = vec![(KEY.into(), record)];
            self.storage.write_observed(&self.tracked, records).await.remove(0).1.unwrap()
        }
    }

    /// The total of a write, which the observer then confirms.
    #[track_caller]
    fn confirm(observer: &mut Observer, outcome: WriteOutcome) -> u64 {
        let WriteOutcome::Confirmed(totals) = outcome else { panic!("{outcome:?}") };
        observer.key.confirm(totals);
        totals.allowed
    }

    #[tokio::test]
    async fn a_write_from_an_overtaken_state_is_rejected() {
        let server = Server::start();
        let (mut a, mut b) =
            (Observer::start("a", &server).await, Observer::start("b", &server).await);
        let outcome = a.count(3).await;
        assert_eq!(confirm(&mut a, outcome), 3);
        assert_eq!(b.count(5).await, WriteOutcome::Conflict);
        b.reload().await;
        assert!(matches!(b.count(5).await, WriteOutcome::Confirmed(_)));
        // The reply was lost.
        let repeated = b.write().await;
        assert_eq!(confirm(&mut b, repeated), 5);
        assert_eq!(a.count(9).await, WriteOutcome::Conflict);
        server.command(&["FLUSHALL"]);
        assert_eq!(b.count(9).await, WriteOutcome::Evicted);
        b.key.begin_record();
        let begun = b.write().await;
        assert_eq!(confirm(&mut b, begun), 4);
    }
}

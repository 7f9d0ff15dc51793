//! Observes one server while this process has its lease.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tollgate_redis::{Primary, StringRead, StringRequest, Subscription};
use tollgate_store::{Failure, FailureKind};

use super::Shared;
use super::counter::Reading;
use super::events::{Change, Events};
use super::flags;
use super::key::KeyState;
use super::lease::Lease;
use super::writer::Writer;

/// How often changed counters are read, records are written, and the flags are checked.
const READ_INTERVAL: Duration = Duration::from_millis(100);
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
const FLAGS_INTERVAL: Duration = Duration::from_secs(5);
/// The delay before a new subscription.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The most counters of one read, and the scans between two reads.
const MAX_READS: usize = 256;
const MAX_SCANS: usize = 40;
/// The most keys that are known at a time.
const MAX_KEYS: usize = 131_072;
/// How long a counter is remembered after it had to expire.
const GRACE_MS: u64 = 10_000;

type Changes = Vec<(Box<[u8]>, Change)>;

/// The task of a server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) shared: Arc<Shared>,
    pub(super) primary: Primary,
    /// The lease, if this process has it. Closed when the server is no primary any more.
    pub(super) lease: watch::Receiver<Option<Lease>>,
    /// Whether notifications arrive.
    pub(super) is_observed: Arc<AtomicBool>,
}

/// Why an observation ended without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    LeaseLost,
    Stopped,
}

impl Node {
    /// Observes the server until the process stops or the server is no primary any more.
    pub(super) async fn run(mut self) {
        let mut observation = Observation::new(&self);
        let mut lost: Option<Instant> = None;
        let mut is_failing = false;
        while self.wait_for_lease().await {
            let ended = observation.run(&self, lost).await;
            if self.is_observed.swap(false, Ordering::Relaxed) {
                (lost, is_failing) = (Some(Instant::now()), false);
            }
            match ended {
                Ok(Ended::Stopped) => break,
                Ok(Ended::LeaseLost) => {
                    // The other observer reads the same counters.
                    observation = Observation::new(&self);
                    lost = None;
                    tracing::warn!("another observer has {}, standing by", self.primary);
                }
                Err(failure) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!("cannot observe {}, retrying: {failure}", self.primary);
                    }
                    sleep(RETRY_DELAY).await;
                }
            }
        }
        observation.finish().await;
    }

    /// Waits for the lease. Returns false if the process stops, or the server is no primary any more.
    async fn wait_for_lease(&mut self) -> bool {
        let mut stop = self.shared.stop.subscribe();
        tokio::select! {
            lease = self.lease.wait_for(|lease| lease.is_some_and(|lease| lease.is_valid())) => {
                lease.is_ok()
            }
            () = stopping(&mut stop) => false,
        }
    }

    fn has_lease(&self) -> bool {
        self.lease.borrow().is_some_and(|lease| lease.is_valid())
    }
}

/// A subscription, and what is known since it began.
struct Observation {
    shared: Arc<Shared>,
    events: Arc<Events>,
    keys: HashMap<Box<[u8]>, KeyState, RandomState>,
    writer: Writer,
    /// The last time of the server in ms, and when it was read.
    time: Option<(u64, Instant)>,
}

impl Observation {
    fn new(node: &Node) -> Self {
        Observation {
            shared: Arc::clone(&node.shared),
            events: Arc::default(),
            keys: HashMap::default(),
            writer: Writer::new(&node.shared),
            time: None,
        }
    }

    async fn run(&mut self, node: &Node, lost: Option<Instant>) -> Result<Ended, Failure> {
        let primary = node.primary.clone();
        let events = self.begin();
        let glob = self.shared.pattern.glob();
        let store = &self.shared.store;
        let subscription =
            store.subscribe(&primary, &glob, move |event| events.record(event)).await?;
        check_flags(&subscription, &primary).await?;
        node.is_observed.store(true, Ordering::Relaxed);
        self.note_gap(node, lost);
        self.shared.began.notify_one();
        let (mut reads, mut writes) = (ticks(READ_INTERVAL), ticks(WRITE_INTERVAL));
        let mut flags = ticks(FLAGS_INTERVAL);
        let mut stop = self.shared.stop.subscribe();
        let mut cursor = Some("0".to_owned());
        loop {
            tokio::select! {
                _ = reads.tick() => {
                    self.scan(&subscription, &glob, &mut cursor).await?;
                    self.read(&subscription).await?;
                }
                _ = writes.tick() => {
                    // A node whose lease has ended must not write.
                    if !node.has_lease() {
                        return Ok(Ended::LeaseLost);
                    }
                    self.write(&subscription).await?;
                }
                _ = flags.tick() => check_flags(&subscription, &primary).await?,
                () = subscription.closed() => {
                    let message = "the connection with the subscription was lost";
                    return Err(Failure::new(FailureKind::ConnectionLost, message));
                }
                () = stopping(&mut stop) => {
                    if node.has_lease() {
                        self.read(&subscription).await?;
                        self.write(&subscription).await?;
                    }
                    return Ok(Ended::Stopped);
                }
            }
        }
    }

    /// Begins with the notifications that an earlier subscription has left.
    fn begin(&mut self) -> Arc<Events> {
        self.report_notified();
        let left = std::mem::take(&mut self.events.lock().changed);
        self.events = Arc::default();
        let mut notified = self.events.lock();
        left.iter().for_each(|(name, change)| notified.read_again(name, *change));
        drop(notified);
        self.keys.values_mut().for_each(KeyState::resume);
        Arc::clone(&self.events)
    }

    /// Counts and logs the time before the subscription, if the server had been observed before.
    fn note_gap(&self, node: &Node, lost: Option<Instant>) {
        let lease = *node.lease.borrow();
        let before = lease.and_then(|lease| Some(lease.unobserved? + lease.renewed.elapsed()));
        let primary = &node.primary;
        let Some(gap) = lost.map(|lost| lost.elapsed()).or(before) else {
            tracing::info!("observing {primary} for the first time");
            return;
        };
        let mut report = self.shared.report.lock();
        report.gaps += 1;
        report.gap_time += gap;
        drop(report);
        tracing::warn!(
            "observing {primary} again after {gap:.1?} without a subscription; increments of counters \
             that expired meanwhile may be missing, all others are read from the counters"
        );
    }

    /// Finds the counters that exist, so that they are read.
    async fn scan(
        &self,
        subscription: &Subscription,
        glob: &[u8],
        cursor: &mut Option<String>,
    ) -> Result<(), Failure> {
        for _ in 0..MAX_SCANS {
            let Some(from) = cursor else { return Ok(()) };
            let (next, names) = subscription.scan_strings(from, glob).await?;
            let mut notified = self.events.lock();
            names.iter().for_each(|name| notified.read_again(name, Change::default()));
            *cursor = Some(next).filter(|next| next != "0");
        }
        Ok(())
    }

    /// Reads the counters that have changed.
    async fn read(&mut self, subscription: &Subscription) -> Result<(), Failure> {
        let changed = std::mem::take(&mut self.events.lock().changed);
        let mut changes: Changes = changed.into_iter().collect();
        changes.retain(|(name, _)| self.shared.key_of(name).is_some());
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(MAX_READS));
            let is_loaded = self.load(&mut changes).await;
            let read = match &is_loaded {
                Ok(()) => self.read_chunk(subscription, &changes).await,
                Err(_) => Ok(()),
            };
            if is_loaded.is_err() || read.is_err() {
                let mut notified = self.events.lock();
                for (name, change) in changes.iter().chain(&rest) {
                    notified.read_again(name, *change);
                }
                drop(notified);
                self.writer.note(&is_loaded);
                return read;
            }
            changes = rest;
        }
        Ok(())
    }

    /// Reads the records of keys that are not known. Removes the changes for which there is no space.
    async fn load(&mut self, changes: &mut Changes) -> Result<(), Failure> {
        let mut unknown: Vec<Box<[u8]>> = Vec::new();
        changes.retain(|(name, change)| {
            let Some(key) = self.shared.key_of(name) else { return false };
            if self.keys.contains_key(key) || unknown.iter().any(|other| **other == *key) {
                return true;
            }
            if self.keys.len() + unknown.len() >= MAX_KEYS {
                self.shared.report.lock().skipped += change.events.max(1);
                return false;
            }
            unknown.push(key.into());
            true
        });
        for (key, state) in self.writer.states(&unknown).await? {
            self.keys.insert(key, KeyState::new(state));
        }
        Ok(())
    }

    async fn read_chunk(
        &mut self,
        subscription: &Subscription,
        changes: &Changes,
    ) -> Result<(), Failure> {
        let requests: Vec<_> = changes
            .iter()
            .map(|(name, change)| StringRequest { name, is_importing: change.is_importing })
            .collect();
        let (time, reads) = subscription.read_strings(&requests).await?;
        let now = time / 1_000;
        self.time = Some((now, Instant::now()));
        // All notifications of changes before the reads have arrived.
        let ended = std::mem::take(&mut self.events.lock().ended);
        for (name, end) in ended {
            let key = self.shared.key_of(&name).and_then(|key| self.keys.get_mut(key));
            if let Some(key) = key {
                key.end(&name, end);
            }
        }
        for ((name, change), read) in changes.iter().zip(reads) {
            self.take(name, *change, read, now);
        }
        Ok(())
    }

    /// Takes over a read.
    fn take(&mut self, name: &[u8], change: Change, read: StringRead, now: u64) {
        let mut report = self.shared.report.lock();
        match read {
            StringRead::Value { value, expiry } => {
                let value = str::from_utf8(&value).ok().and_then(|value| value.parse().ok());
                let key = self.shared.key_of(name).and_then(|key| self.keys.get_mut(key));
                // A string that is no number of at least 0 is no counter.
                let (Some(value), Some(key)) = (value, key) else { return };
                let reading = Reading { value, expiry, now, events: change.events };
                let rise = key.read(name, reading, &self.shared.tracked);
                report.increments += rise.by;
                report.without_notification += rise.unnotified;
                report.without_notification =
                    report.without_notification.saturating_sub(rise.explained);
                report.fallen += u64::from(rise.has_fallen);
            }
            StringRead::Absent if change.events > 0 => {
                report.unread_counters += 1;
                report.unread_increments += change.events;
            }
            // Its slot may be on its way to this server.
            StringRead::Elsewhere if !change.is_importing => {
                let change = Change { is_importing: true, ..change };
                self.events.lock().read_again(name, change);
            }
            StringRead::Absent | StringRead::Elsewhere | StringRead::OtherType => {}
        }
    }

    /// Writes what was counted, and forgets counters that have expired.
    async fn write(&mut self, subscription: &Subscription) -> Result<(), Failure> {
        for name in self.writer.write(&mut self.keys).await {
            self.events.lock().read_again(&name, Change::default());
        }
        if !self.shared.is_read_only {
            self.writer.copy(subscription, &mut self.keys).await?;
        }
        if let Some((time, read)) = self.time {
            let elapsed = u64::try_from(read.elapsed().as_millis()).unwrap_or(u64::MAX);
            let horizon = time.saturating_add(elapsed).saturating_sub(GRACE_MS);
            self.keys.retain(|_, key| !key.forget(horizon));
        }
        Ok(())
    }

    /// Adds the numbers of the notifications to the report.
    fn report_notified(&self) {
        let mut notified = self.events.lock();
        let (counters, increments) = std::mem::take(&mut notified.unread);
        let skipped = std::mem::take(&mut notified.skipped);
        drop(notified);
        let mut report = self.shared.report.lock();
        report.unread_counters += counters;
        report.unread_increments += increments;
        report.skipped += skipped;
    }

    /// Tries once more to write, and adds what is left to the report.
    async fn finish(&mut self) {
        self.writer.write(&mut self.keys).await;
        self.report_notified();
        let unwritten: u64 = self.keys.values().map(KeyState::unwritten).sum();
        self.shared.report.lock().unwritten += unwritten;
    }
}

/// Waits until the process stops.
async fn stopping(stop: &mut watch::Receiver<bool>) {
    // The sender is shared with this task, so it is not dropped.
    let _ = stop.wait_for(|is_stopping| *is_stopping).await;
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Fails if the server does not send what is needed.
async fn check_flags(subscription: &Subscription, primary: &Primary) -> Result<(), Failure> {
    let flags = subscription.notification_flags().await?;
    match flags.and_then(|flags| flags::missing(&flags)) {
        None => Ok(()),
        Some(missing) => {
            let message = missing.message(primary);
            Err(Failure::new(FailureKind::Misconfigured, message))
        }
    }
}

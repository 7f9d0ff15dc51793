//! Observes one server while this process has its lease.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tollgate_redis::{KeyEvent, Primary, StringRead, StringRequest, Subscription};
use tollgate_state::Failure;

use super::Shared;
use super::counter::Reading;
use super::events::{Change, Events};
use super::flags;
use super::key::KeyState;
use super::lease::Lease;
use super::writer::{Keys, Writer};

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
enum Exit {
    LeaseLost,
    Stopped,
}

/// Why an observation begins again.
#[derive(Debug)]
enum ObservationError {
    Store(Failure),
    /// The server does not send the notifications: how to change that.
    Notifications(String),
    ConnectionLost,
}

impl From<Failure> for ObservationError {
    fn from(failure: Failure) -> Self {
        ObservationError::Store(failure)
    }
}

impl fmt::Display for ObservationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObservationError::Store(failure) => failure.fmt(f),
            ObservationError::Notifications(message) => f.write_str(message),
            ObservationError::ConnectionLost => f.write_str("the connection was lost"),
        }
    }
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
                Ok(Exit::Stopped) => break,
                Ok(Exit::LeaseLost) => {
                    // The other observer reads the same counters.
                    observation.discard();
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
    keys: Keys,
    writer: Writer,
    /// The last time of the server in ms, and when it was read.
    time: Option<(u64, Instant)>,
}

impl Observation {
    fn new(node: &Node) -> Self {
        Observation {
            shared: Arc::clone(&node.shared),
            events: Arc::default(),
            keys: Keys::default(),
            writer: Writer::new(&node.shared),
            time: None,
        }
    }

    async fn run(&mut self, node: &Node, lost: Option<Instant>) -> Result<Exit, ObservationError> {
        let primary = node.primary.clone();
        // Notifications may have been lost before.
        self.keys.values_mut().for_each(KeyState::resume);
        let (events, shared) = (Arc::clone(&self.events), Arc::clone(&self.shared));
        let record = move |event: KeyEvent<'_>| {
            if shared.key_of(event.name).is_some() {
                events.record(event);
            }
        };
        let glob = self.shared.pattern.glob();
        let subscription = self.shared.store.subscribe(&primary, &glob, record).await?;
        check_flags(&subscription, &primary).await?;
        node.is_observed.store(true, Ordering::Relaxed);
        self.note_gap(node, lost);
        self.shared.began.notify_one();
        let (mut reads, mut writes) = (ticks(READ_INTERVAL), ticks(WRITE_INTERVAL));
        let mut flags = ticks(FLAGS_INTERVAL);
        flags.reset();
        let mut stop = self.shared.stop.subscribe();
        let mut cursor = Some("0".to_owned());
        loop {
            tokio::select! {
                _ = reads.tick() => {
                    self.scan(&subscription, &glob, &mut cursor).await?;
                    self.read(&subscription).await?;
                }
                _ = writes.tick() => {
                    if node.lease.has_changed().is_err() {
                        // The server is no primary any more.
                        return Ok(Exit::Stopped);
                    }
                    if node.lease.borrow().is_none() {
                        return Ok(Exit::LeaseLost);
                    }
                    // A lease that is not renewed may have a new holder. Until it is renewed, increments
                    // are counted and wait.
                    if node.has_lease() {
                        self.write(&subscription).await;
                    }
                }
                _ = flags.tick() => check_flags(&subscription, &primary).await?,
                () = subscription.closed() => return Err(ObservationError::ConnectionLost),
                () = stopping(&mut stop) => {
                    if node.has_lease() {
                        self.read(&subscription).await?;
                        self.write(&subscription).await;
                    }
                    return Ok(Exit::Stopped);
                }
            }
        }
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
            if self.events.lock().is_full() {
                return Ok(());
            }
            let (next, names) = subscription.scan_strings(from, glob).await?;
            let names = names.iter().filter(|name| self.shared.key_of(name).is_some());
            let mut events = self.events.lock();
            names.for_each(|name| events.read_again(name, Change::default()));
            drop(events);
            *cursor = Some(next).filter(|next| next != "0");
        }
        Ok(())
    }

    /// Reads the counters that have changed.
    async fn read(&mut self, subscription: &Subscription) -> Result<(), Failure> {
        let changed = std::mem::take(&mut self.events.lock().changed);
        let mut changes: Changes = changed.into_iter().collect();
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(MAX_READS));
            self.load(&mut changes).await;
            if let Err(failure) = self.read_chunk(subscription, &changes).await {
                changes.extend(rest);
                self.read_again(changes);
                return Err(failure);
            }
            changes = rest;
        }
        Ok(())
    }

    fn read_again(&self, changes: Changes) {
        let mut events = self.events.lock();
        changes.iter().for_each(|(name, change)| events.read_again(name, *change));
    }

    /// Reads the records of keys that are not known. Removes the changes for which there is no space, and
    /// leaves those whose record cannot be read for later.
    async fn load(&mut self, changes: &mut Changes) {
        let mut unknown: HashSet<Box<[u8]>, RandomState> = HashSet::default();
        for (name, change) in std::mem::take(changes) {
            let Some(key) = self.shared.key_of(&name) else { continue };
            if !self.keys.contains_key(key) && !unknown.contains(key) {
                if self.keys.len() + unknown.len() >= MAX_KEYS && !self.forget_idle_keys() {
                    self.shared.report.lock().skipped += change.events.max(1);
                    continue;
                }
                unknown.insert(key.into());
            }
            changes.push((name, change));
        }
        let unknown: Vec<_> = unknown.into_iter().collect();
        let (states, result) = self.writer.states(&unknown).await;
        let states = states.into_iter().map(|(key, state)| (key, KeyState::new(state)));
        self.keys.extend(states);
        if result.is_err() {
            let is_known = |(name, _): &(Box<[u8]>, Change)| {
                self.shared.key_of(name).is_some_and(|key| self.keys.contains_key(key))
            };
            let (known, others) = std::mem::take(changes).into_iter().partition(is_known);
            *changes = known;
            self.read_again(others);
            self.writer.log(&result);
        }
    }

    /// Forgets the keys whose records have everything about them. Returns whether there were any.
    fn forget_idle_keys(&mut self) -> bool {
        let (before, horizon) = (self.keys.len(), self.horizon());
        self.keys.retain(|_, key| !key.is_idle(horizon));
        self.keys.len() < before
    }

    /// The server's time in ms before which counters and keys can be forgotten.
    fn horizon(&self) -> u64 {
        let Some((time, read)) = self.time else { return 0 };
        let elapsed = u64::try_from(read.elapsed().as_millis()).unwrap_or(u64::MAX);
        time.saturating_add(elapsed).saturating_sub(GRACE_MS)
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
        let ends = std::mem::take(&mut self.events.lock().ends);
        for (name, end) in ends {
            let key = self.shared.key_of(&name).and_then(|key| self.keys.get_mut(key));
            if let Some(key) = key {
                key.end(&name, end);
            }
        }
        for ((name, change), read) in changes.iter().zip(reads) {
            self.apply_read(name, *change, read, now);
        }
        Ok(())
    }

    fn apply_read(&mut self, name: &[u8], change: Change, read: StringRead, now: u64) {
        let mut report = self.shared.report.lock();
        match read {
            StringRead::Value { value, expiry } => {
                let value = str::from_utf8(&value).ok().and_then(|value| value.parse().ok());
                let key = self.shared.key_of(name).and_then(|key| self.keys.get_mut(key));
                // A string that is no number of at least 0 is no counter.
                let (Some(value), Some(key)) = (value, key) else { return };
                let reading = Reading { value, expiry, now, events: change.events };
                let Some(rise) = key.apply_reading(name, reading, &self.shared.tracked) else {
                    report.skipped += change.events.max(1);
                    return;
                };
                report.increments += rise.by;
                report.without_notification += rise.unnotified;
                report.without_notification =
                    report.without_notification.saturating_sub(rise.explained);
                report.decreased += u64::from(rise.has_decreased);
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
    async fn write(&mut self, subscription: &Subscription) {
        for name in self.writer.write(&mut self.keys).await {
            self.events.lock().read_again(&name, Change::default());
        }
        if self.shared.is_read_only {
            self.keys.values_mut().for_each(|key| key.uncopied = None);
        } else {
            self.writer.copy(subscription, &mut self.keys).await;
        }
        let horizon = self.horizon();
        self.keys.retain(|_, key| !key.forget(horizon));
    }

    /// Leaves the increments that are not written to the observer that has the lease now.
    fn discard(&self) {
        self.report_notified();
        let unwritten: u64 = self.keys.values().map(KeyState::unwritten).sum();
        let mut report = self.shared.report.lock();
        report.increments = report.increments.saturating_sub(unwritten);
    }

    /// Adds the numbers of the notifications to the report.
    fn report_notified(&self) {
        let mut events = self.events.lock();
        let (counters, increments) = std::mem::take(&mut events.unread);
        let skipped = std::mem::take(&mut events.skipped);
        drop(events);
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
async fn check_flags(
    subscription: &Subscription,
    primary: &Primary,
) -> Result<(), ObservationError> {
    let flags = subscription.notification_flags().await?;
    match flags.and_then(|flags| flags::missing(&flags)) {
        None => Ok(()),
        Some(missing) => Err(ObservationError::Notifications(missing.message(primary))),
    }
}

//! A run: load, a fault, recovery, and what they are checked against.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use crate::bounds::{self, Admitted, LIMIT};
use crate::fleet::{self, Fleet, metrics_client, read_metric};
use crate::scale::Scale;
use crate::traffic::{COUNT, Event, POLICIES, Progress, Traffic};

/// The time between two reads of the metrics of all daemons.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long all daemons must be healthy to count as recovered.
const HEALTHY: Duration = Duration::from_millis(500);
/// The longest recovery.
const MAX_RECOVERY: Duration = Duration::from_secs(30);
/// How late a poll may notice that no key is pending, in µs.
const BLUR: u64 = 300_000;
/// By how much the daemons may grow together, for each, in KiB.
const MAX_GROWTH_KIB: u64 = 32 << 10;
/// The charges of this time before a failover may be lost: replication is asynchronous.
const REPLICATION_LAG: u64 = 1_000_000;

/// What the store and the shares together may admit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// The store keeps its data: it admits the limit, and the shares add up to another.
    Outage,
    /// The first processes are cut off: only their shares are added.
    Isolated(usize),
    /// Each failover may lose charges of at most a limit.
    Failovers(usize),
}

impl Bound {
    /// The bound as a multiple of the limit.
    fn factor(self, daemons: usize) -> f64 {
        let limit = LIMIT as f64;
        match self {
            Bound::Outage => 2.0,
            Bound::Isolated(count) => {
                1.0 + (count * usize::try_from(LIMIT).unwrap().div_ceil(daemons)) as f64 / limit
            }
            Bound::Failovers(count) => 1.0 + count as f64,
        }
    }
}

/// The result of a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) decisions: usize,
    /// The longest time of a decision, and the 99th percentile, in µs.
    pub(crate) p100: u64,
    pub(crate) p99: u64,
    pub(crate) admitted: Admitted,
    /// What the shares have admitted.
    pub(crate) shares: Admitted,
    /// The longest time from the end of a fault to the recovery of all daemons, in µs.
    pub(crate) recovery: u64,
    /// By how much the daemons have grown, for each, in KiB.
    pub(crate) growth_kib: u64,
    pub(crate) unknown_outcomes: u64,
}

/// A run in progress.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    fleet: &'a Fleet,
    traffic: Traffic,
    pending: Pending,
    /// When charges may have been lost, in µs since the start of the run.
    losses: Vec<u64>,
    recovery: u64,
    /// The unknown outcomes of daemons that have ended.
    ended_unknown: f64,
    ended: Option<usize>,
}

impl<'a> Run<'a> {
    /// Starts the load, calls `fault` after a while, and asserts that the daemons recover after it and
    /// keep their promises. Daemons share `keys` keys for each policy.
    pub(crate) fn measure(
        scale: &Scale,
        fleet: &'a Fleet,
        keys: usize,
        bound: Bound,
        fault: impl FnOnce(&mut Run<'a>),
    ) -> Measurement {
        fleet.wait_for_members();
        let traffic = Traffic::start(fleet, keys, scale.pause);
        let pending = Pending::watch(fleet, Arc::clone(&traffic.progress));
        let (losses, recovery, ended_unknown, ended) = (Vec::new(), 0, 0.0, None);
        let mut run = Run { fleet, traffic, pending, losses, recovery, ended_unknown, ended };
        sleep(scale.warm_up);
        let resident = fleet.resident_kib();
        run.traffic.assert_running();
        fault(&mut run);
        run.recover();
        // A process that does not count what others have admitted would admit it again.
        sleep(scale.warm_up);
        let growth = match run.ended {
            None => fleet.resident_kib().saturating_sub(resident),
            Some(_) => 0,
        };
        let growth_kib = growth / u64::try_from(fleet.daemons.len()).unwrap();
        assert!(growth_kib <= MAX_GROWTH_KIB, "each daemon has grown by {growth_kib} KiB");
        run.check(scale, keys, bound, growth_kib)
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.traffic.progress
    }

    /// Notes that charges may be lost now.
    pub(crate) fn note_loss(&mut self) {
        self.losses.push(self.progress().now());
    }

    /// Waits until all daemons decide with the store, and have charged it. The fault has just ended.
    pub(crate) fn recover(&mut self) {
        let ended_at = self.progress().now();
        loop {
            sleep(POLL_INTERVAL);
            self.traffic.assert_running();
            let now = self.progress().now();
            let last = self.progress().degraded_at().max(self.pending.last()).max(ended_at);
            let is_stored = self.progress().is_stored_since(ended_at);
            let healthy = u64::try_from(HEALTHY.as_micros()).unwrap();
            if is_stored && now - last >= healthy && self.pending.is_read_since(ended_at) {
                self.recovery = self.recovery.max(last - ended_at);
                return;
            }
            assert!(
                u128::from(now - ended_at) < MAX_RECOVERY.as_micros(),
                "not recovered: {}",
                self.fleet.log(0)
            );
        }
    }

    /// Stops the client of a daemon, and then the daemon with SIGTERM; its exit is not awaited.
    pub(crate) fn terminate(&mut self, daemon: usize) {
        self.traffic.progress.stop(daemon);
        while !self.traffic.has_ended(daemon) {
            sleep(Duration::from_millis(1));
        }
        let process = &self.fleet.daemons[daemon];
        self.pending.expect_end(daemon);
        self.ended_unknown += fleet::metric(process, "tollgate_store_unknown_outcomes_total");
        assert!(fleet::metric(process, "tollgate_store_pending_keys") > 0.0);
        process.signal(rustix::process::Signal::TERM);
        self.ended = Some(daemon);
    }

    fn check(self, scale: &Scale, keys: usize, bound: Bound, growth_kib: u64) -> Measurement {
        let settled_at = self.pending.last();
        let events = self.traffic.stop();
        self.pending.stop();
        let rest = self.fleet.daemons.iter().enumerate();
        let running: Vec<_> = rest.filter(|(index, _)| Some(*index) != self.ended).collect();
        let sum = |name| running.iter().map(|(_, daemon)| fleet::metric(daemon, name)).sum::<f64>();
        assert_eq!(sum("tollgate_store_charged_back_total{result=\"lost\"}"), 0.0);
        let unknown = sum("tollgate_store_unknown_outcomes_total") + self.ended_unknown;
        let used = fleet::used(running[0].1, POLICIES[COUNT].name, keys);
        check_charges(&events, &used, unknown as u64, &self.losses);
        let admitted = check_bounds(&events, bound, self.fleet.daemons.len(), settled_at);
        let slowest = events.iter().max_by_key(|event| event.latency).unwrap();
        assert!(
            u128::from(slowest.latency) <= scale.max_latency().as_micros(),
            "a decision took {} µs: {slowest:?}, faults at {:?} µs",
            slowest.latency,
            self.losses
        );
        let mut latencies: Vec<_> = events.iter().map(|event| event.latency).collect();
        latencies.sort_unstable();
        Measurement {
            decisions: events.len(),
            p100: slowest.latency,
            p99: latencies[latencies.len() * 99 / 100],
            admitted,
            shares: bounds::worst(&events, |event| event.is_local),
            recovery: self.recovery,
            growth_kib,
            unknown_outcomes: unknown as u64,
        }
    }
}

/// Asserts the bounds. Returns the most that was admitted.
fn check_bounds(events: &[Event], bound: Bound, daemons: usize, settled_at: u64) -> Admitted {
    let has = |condition: &dyn Fn(&Event) -> bool| events.iter().any(condition);
    assert!(has(&|event| event.is_local && event.is_admitted), "no share was used");
    assert!(has(&|event| !event.is_admitted && !event.is_degraded), "the store denied nothing");
    let shares = bounds::worst(events, |event| event.is_local);
    assert!(shares.worst <= 1.0, "the shares admitted {shares}");
    // A busy machine may miss the deadline in processes that are not cut off.
    let is_counted = |event: &Event| match bound {
        Bound::Isolated(count) => !event.is_local || event.daemon < count,
        _ => true,
    };
    let all = bounds::worst(events, is_counted);
    let factor = bound.factor(daemons);
    assert!(all.worst <= factor, "{all} was admitted, at most {factor} is promised");
    if !matches!(bound, Bound::Failovers(_)) {
        let stored = bounds::worst(events, |event| !event.is_local);
        assert!(stored.worst <= 1.0, "the store admitted {stored}");
    }
    if matches!(bound, Bound::Outage) {
        let is_late = |event: &Event| event.is_local || event.received > settled_at + BLUR;
        let afterwards = bounds::worst(events, is_late);
        assert!(
            afterwards.worst <= 1.0,
            "the shares, and the store after them, admitted {afterwards}"
        );
    }
    all
}

/// Asserts that the store was charged for what was admitted, and at most also for requests whose
/// outcome is unknown.
fn check_charges(events: &[Event], used: &BTreeMap<usize, u64>, unknown: u64, losses: &[u64]) {
    for (key, charged) in used {
        let admitted: Vec<_> = events
            .iter()
            .filter(|event| (event.policy, event.key, event.is_admitted) == (COUNT, *key, true))
            .collect();
        let may_be_lost = |event: &&&Event| {
            losses.iter().any(|loss| {
                event.received + REPLICATION_LAG >= *loss
                    && event.received <= loss + REPLICATION_LAG
            })
        };
        let lost = u64::try_from(admitted.iter().filter(may_be_lost).count()).unwrap();
        let admitted = u64::try_from(admitted.len()).unwrap();
        assert!(
            admitted - lost <= *charged && *charged <= admitted + unknown,
            "key {key}: {admitted} admitted, {charged} charged, {unknown} unknown, {lost} near a failover"
        );
    }
}

/// Reads in the background whether daemons have pending keys.
#[derive(Debug)]
struct Pending {
    shared: Arc<PendingShared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct PendingShared {
    is_stopped: AtomicBool,
    /// The number of the daemon that may end, plus 1.
    ending: AtomicU64,
    /// When a daemon last had a pending key, in µs since the start of the run.
    last: AtomicU64,
    /// When the last round began.
    read_at: AtomicU64,
}

impl Pending {
    fn watch(fleet: &Fleet, progress: Arc<Progress>) -> Self {
        let shared = Arc::new(PendingShared::default());
        let addresses = fleet.daemons.iter().map(|daemon| daemon.metrics_address().to_owned());
        let mut clients: Vec<_> = addresses.map(|address| Some(metrics_client(&address))).collect();
        let watched = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !watched.is_stopped.load(Ordering::SeqCst) {
                let began_at = progress.now();
                for (index, client) in (1..).zip(&mut clients) {
                    let Some(open) = client else { continue };
                    let page = open.try_send("GET /metrics", &["Host: localhost"], "");
                    let is_pending = page.as_ref().is_none_or(|page| {
                        read_metric(&page.body, "tollgate_store_pending_keys") > 0.0
                    });
                    if is_pending {
                        watched.last.store(progress.now(), Ordering::SeqCst);
                    }
                    if page.is_none() {
                        assert_eq!(watched.ending.load(Ordering::SeqCst), index, "a daemon ended");
                        *client = None;
                    }
                }
                watched.read_at.store(began_at, Ordering::SeqCst);
                sleep(POLL_INTERVAL);
            }
        });
        Pending { shared, thread }
    }

    fn last(&self) -> u64 {
        self.shared.last.load(Ordering::SeqCst)
    }

    fn is_read_since(&self, time: u64) -> bool {
        self.shared.read_at.load(Ordering::SeqCst) >= time
    }

    /// Permits a daemon to end. Until then it is read, because the others do not know what it has
    /// admitted before it has charged the store.
    fn expect_end(&self, daemon: usize) {
        self.shared.ending.store(u64::try_from(daemon).unwrap() + 1, Ordering::SeqCst);
    }

    fn stop(self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

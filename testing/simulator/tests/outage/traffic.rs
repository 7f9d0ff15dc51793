//! Traffic of several processes, and the trace of their decisions.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tollgate::{Cost, Key, Limiter, ManualClock, OnStoreError, Policy, Source, Timestamp};
use tollgate_redis::{BreakerState, RedisOptions, RedisStore};
use tollgate_simulator::{Client, Server, World};

const DEADLINE: Duration = Duration::from_millis(15);
const MAX_COST: u64 = 2;
/// The clocks run in steps of a millisecond.
const TICK: Duration = Duration::from_millis(1);
pub(crate) const KEYS: [&str; 2] = ["user:1", "user:2"];
/// The policies, by name and limits.
pub(crate) const POLICIES: [(&str, &str); 6] = [
    ("day", "20/d fixed"),
    ("window", "20/10s fixed"),
    ("log", "20/10s log"),
    ("bucket", "20/10s burst 20"),
    ("buckets", "20/10s sliding by 1s"),
    ("two", "30/10s log; 20/10s burst 20"),
];

pub(crate) fn policy(index: usize) -> Policy {
    let (name, limits) = POLICIES[index];
    let limits = limits.split("; ").map(|limit| limit.parse().unwrap());
    Policy::new(name, limits).unwrap().with_on_store_error(OnStoreError::Local)
}

/// Starts the clock of all processes.
pub(crate) fn start_clock(world: &World) -> ManualClock {
    let clock = ManualClock::at(Timestamp::from_micros(world.now_micros()));
    let (world, ticking) = (world.clone(), clock.clone());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(TICK).await;
            ticking.set(Timestamp::from_micros(world.now_micros()));
        }
    });
    clock
}

/// A process with a limiter.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    world: World,
    client: Client,
    limiter: Limiter,
    policies: Vec<Policy>,
}

impl Process {
    pub(crate) async fn start(world: &World, server: &Server, clock: &ManualClock) -> Self {
        let client = world.start_client();
        let options = RedisOptions {
            call_timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_millis(100),
            ..client.options()
        };
        let store = RedisStore::open(&server.url(), options).unwrap();
        // It starts without the store, too.
        let _ = store.ready().await;
        let limiter = Limiter::builder().clock(clock.clone()).deadline(DEADLINE).with_store(store);
        tokio::time::sleep(Duration::from_millis(50)).await;
        Process {
            world: world.clone(),
            client,
            limiter,
            policies: (0..POLICIES.len()).map(policy).collect(),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Checks a cost of 1 by the index of the policy and of the key.
    pub(crate) async fn is_admitted(&self, policy: usize, key: usize) -> bool {
        self.check(policy, key, 1).await.is_admitted
    }

    async fn check(&self, policy: usize, key: usize, cost: u64) -> Event {
        let nodes = self.limiter.as_redis().unwrap().nodes();
        let breaker = nodes.first().map_or(BreakerState::Closed, |node| node.breaker.state);
        let (start, sent_at) = (Instant::now(), self.world.now_micros());
        let name = Key::new(KEYS[key].as_bytes()).unwrap();
        let decision =
            self.limiter.check_cost(&self.policies[policy], name, Cost::new(cost).unwrap());
        let decision = decision.await;
        let took = start.elapsed();
        assert!(took <= DEADLINE + TICK, "a decision took {took:?}");
        let (at, is_admitted) = (decision.time.as_micros(), decision.allowed);
        let (process, remaining) = (self.client.index(), decision.remaining);
        let source = decision.source;
        Event { process, sent_at, remaining, at, policy, key, cost, is_admitted, source, breaker }
    }
}

/// A decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) process: usize,
    pub(crate) sent_at: u64,
    /// The time of the decision, in µs.
    pub(crate) at: u64,
    pub(crate) policy: usize,
    pub(crate) key: usize,
    pub(crate) cost: u64,
    pub(crate) is_admitted: bool,
    pub(crate) remaining: u64,
    pub(crate) source: Source,
    /// The state of the circuit breaker when the request was sent.
    pub(crate) breaker: BreakerState,
}

impl Event {
    /// Returns whether the process decided with its share.
    pub(crate) fn is_local(&self) -> bool {
        self.source == Source::Fallback
    }
}

/// The decisions of all processes, when the fault began, and when every process had charged the store after it, in µs.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) events: Vec<Event>,
    pub(crate) began_at: u64,
    pub(crate) settled_at: u64,
    /// Whether replies were lost after the fault.
    pub(crate) loses_replies: bool,
}

impl Trace {
    /// Asserts that a limit of a day was charged what was admitted, and at most also the requests whose
    /// outcome is unknown.
    pub(crate) async fn check_charges(&self, processes: &[Process]) {
        let unknown = processes
            .iter()
            .map(|process| process.limiter.as_redis().unwrap().stats().unknown_outcomes);
        let unknown = MAX_COST * unknown.sum::<u64>();
        let process = &processes[0];
        for (key, name) in KEYS.iter().enumerate() {
            let events = self.events.iter();
            let admitted: u64 = events
                .filter(|event| (event.policy, event.key, event.is_admitted) == (0, key, true))
                .map(|event| event.cost)
                .sum();
            let key = Key::new(name.as_bytes()).unwrap();
            let inspection = process.limiter.inspect(&process.policies[0], key).await.unwrap();
            let charged = inspection.limits[0].used;
            // A debt is at most one more capacity.
            let expected = admitted.min(40);
            assert!(charged >= expected, "{name}: {admitted} admitted, {charged} charged");
            assert!(
                charged <= expected + unknown,
                "{name}: {admitted} admitted, {unknown} unknown, {charged} charged",
            );
        }
    }
}

/// Traffic in progress.
pub(crate) struct Traffic {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Vec<Event>>>,
}

/// Starts two callers in each process. If the first process is busy, its circuit breaker has enough calls
/// to open.
pub(crate) fn start(world: &World, processes: &[Process], is_first_busy: bool) -> Traffic {
    let (stop, stopped) = watch::channel(false);
    let callers = processes.iter().enumerate().flat_map(|process| [process, process]);
    let tasks = callers.map(|(index, process)| {
        let max_pause = if index == 0 && is_first_busy { 40 } else { 400 };
        let (world, process, stopped) = (world.clone(), process.clone(), stopped.clone());
        tokio::spawn(async move {
            let (mut rng, mut events) = (world.rng(), Vec::new());
            while !*stopped.borrow() {
                tokio::time::sleep(Duration::from_millis(rng.u64(1..max_pause))).await;
                let (policy, key) = (rng.usize(..POLICIES.len()), rng.usize(..KEYS.len()));
                let cost = rng.u64(1..=MAX_COST);
                events.push(process.check(policy, key, cost).await);
            }
            events
        })
    });
    let tasks = tasks.collect();
    Traffic { stop, tasks }
}

impl Traffic {
    /// Ends the traffic; returns its trace in order.
    pub(crate) async fn stop(self, began_at: u64, settled_at: u64, loses_replies: bool) -> Trace {
        self.stop.send_replace(true);
        let mut events = Vec::new();
        for task in self.tasks {
            events.extend(task.await.unwrap());
        }
        events.sort_by_key(|event| event.at);
        Trace { events, began_at, settled_at, loses_replies }
    }
}

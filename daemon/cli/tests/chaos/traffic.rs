//! The load: a client for each daemon, and the trace of all decisions.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bounds::Kind;
use crate::client::Client;
use crate::fleet::Fleet;

const HOST: [&str; 1] = ["Host: localhost"];
/// How long a client keeps a lease.
const LEASE_KEPT: Duration = Duration::from_millis(100);

/// A policy of all daemons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadPolicy {
    pub(crate) name: &'static str,
    pub(crate) limits: &'static str,
    pub(crate) kind: Kind,
}

const fn policy(name: &'static str, limits: &'static str, kind: Kind) -> LoadPolicy {
    LoadPolicy { name, limits, kind }
}

/// Every limit is 20, except that of `count`, which admits every request and so shows that the store
/// was charged exactly.
pub(crate) const POLICIES: [LoadPolicy; 10] = [
    policy("count", "1000000/d fixed", Kind::Unbounded),
    policy("day", "20/d fixed", Kind::Whole),
    policy("window", "20/10s fixed", Kind::AlignedWindow),
    policy("log", "20/10s log", Kind::Window),
    policy("buckets", "20/10s sliding by 1s", Kind::Buckets),
    policy("bucket", "20/10s burst 20", Kind::TokenBucket),
    policy("two", "30/10s log; 20/10s burst 20", Kind::TokenBucket),
    policy("slots", "20 concurrent lease 10s", Kind::Leases),
    // These are checked in one request.
    policy("pair-a", "20/10s log", Kind::Window),
    policy("pair-b", "20/d fixed", Kind::Whole),
];
pub(crate) const COUNT: usize = 0;
const SLOTS: usize = 7;
const PAIR: usize = 8;

/// A decision.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) daemon: usize,
    pub(crate) policy: usize,
    pub(crate) key: usize,
    /// The time of the decision according to the response, in µs since the Unix epoch.
    pub(crate) at: u64,
    /// When the response was received, in µs since the start of the run.
    pub(crate) received: u64,
    /// The time from the request to the response, in µs.
    pub(crate) latency: u64,
    pub(crate) is_admitted: bool,
    pub(crate) is_local: bool,
    pub(crate) is_degraded: bool,
    /// Until when a lease was in use, in µs since the start of the run.
    pub(crate) used_until: u64,
}

/// What the clients of a running load have seen, by daemon, in µs since the start of the run.
#[derive(Debug)]
pub(crate) struct Progress {
    start: Instant,
    clients: Vec<ClientProgress>,
}

#[derive(Debug, Default)]
struct ClientProgress {
    is_stopped: AtomicBool,
    /// When the last degraded decision was received.
    degraded_at: AtomicU64,
    /// When the last admission by the store was received.
    stored_at: AtomicU64,
}

impl Progress {
    /// The time since the start of the run, in µs.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap()
    }

    /// When the last degraded decision was received.
    pub(crate) fn degraded_at(&self) -> u64 {
        let running = self.clients.iter().filter(|client| !client.is_stopped());
        running.map(|client| client.degraded_at.load(Ordering::SeqCst)).max().unwrap()
    }

    /// Whether the store has decided for each daemon since a time, and after the last degraded decision.
    pub(crate) fn is_stored_since(&self, time: u64) -> bool {
        let mut running = self.clients.iter().filter(|client| !client.is_stopped());
        running.all(|client| {
            let stored_at = client.stored_at.load(Ordering::SeqCst);
            stored_at > time && stored_at > client.degraded_at.load(Ordering::SeqCst)
        })
    }

    /// Stops the client of a daemon.
    pub(crate) fn stop(&self, daemon: usize) {
        self.clients[daemon].is_stopped.store(true, Ordering::SeqCst);
    }
}

impl ClientProgress {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

/// A load in progress.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) progress: Arc<Progress>,
    clients: Vec<JoinHandle<Vec<Event>>>,
}

impl Traffic {
    pub(crate) fn start(fleet: &Fleet, keys: usize, pause: Duration) -> Self {
        let clients = fleet.daemons.iter().map(|_| ClientProgress::default()).collect();
        let progress = Arc::new(Progress { start: Instant::now(), clients });
        let clients = fleet.daemons.iter().enumerate().map(|(daemon, process)| {
            let client = Client::new(TcpStream::connect(process.address()).unwrap());
            let progress = Arc::clone(&progress);
            let (events, leases) = (Vec::new(), Vec::new());
            let caller = Caller { daemon, client, progress, events, leases };
            std::thread::spawn(move || caller.run(keys, pause))
        });
        let clients = clients.collect();
        Traffic { progress, clients }
    }

    /// Whether the client of a daemon has ended.
    pub(crate) fn has_ended(&self, daemon: usize) -> bool {
        self.clients[daemon].is_finished()
    }

    /// Asserts that no client has failed.
    pub(crate) fn assert_running(&self) {
        for (progress, client) in self.progress.clients.iter().zip(&self.clients) {
            assert!(progress.is_stopped() || !client.is_finished(), "a client has failed");
        }
    }

    /// Ends the load; returns all decisions in the order of their times.
    pub(crate) fn stop(self) -> Vec<Event> {
        (0..self.clients.len()).for_each(|daemon| self.progress.stop(daemon));
        let clients = self.clients.into_iter();
        let mut events: Vec<_> = clients.flat_map(|client| client.join().unwrap()).collect();
        events.sort_by_key(|event| event.at);
        events
    }
}

/// The client of a daemon.
struct Caller {
    daemon: usize,
    client: Client,
    progress: Arc<Progress>,
    events: Vec<Event>,
    leases: Vec<Lease>,
}

/// A lease that was not released yet.
struct Lease {
    id: String,
    key: usize,
    /// The index of its event.
    event: usize,
    release_at: u64,
}

impl Caller {
    fn run(mut self, keys: usize, pause: Duration) -> Vec<Event> {
        // `pair-a` and `pair-b` are one request.
        let kinds = POLICIES.len() - 1;
        let mut number = self.daemon;
        while !self.progress.clients[self.daemon].is_stopped() {
            // From half to one and a half of the pause, so that the clients do not keep step.
            sleep(pause * u32::try_from(8 + (number * 7 + self.daemon) % 17).unwrap() / 16);
            self.check(number % kinds, number / kinds % keys);
            self.release_due();
            number += 1;
        }
        self.events
    }

    fn check(&mut self, policy: usize, key: usize) {
        let check =
            |index: usize| format!(r#"{{"policy":"{}","key":"user:{key}"}}"#, POLICIES[index].name);
        let body = match policy {
            PAIR => format!(r#"{{"checks":[{},{}]}}"#, check(PAIR), check(PAIR + 1)),
            _ => check(policy),
        };
        let sent = self.progress.now();
        let response = self.client.send("POST /v1/check", &HOST, &body);
        let received = self.progress.now();
        assert!([200, 429, 503].contains(&response.status), "{}", response.body);
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        let is_admitted = answer["allowed"].as_bool().unwrap();
        let one = [answer.clone()];
        let decisions = answer["decisions"].as_array().map_or(&one[..], Vec::as_slice);
        for (index, decision) in decisions.iter().enumerate() {
            let policy = policy + index;
            let progress = &self.progress.clients[self.daemon];
            let is_degraded = decision["degraded"].as_bool().unwrap();
            if is_degraded {
                progress.degraded_at.store(received, Ordering::SeqCst);
            } else if policy == COUNT && is_admitted {
                progress.stored_at.store(received, Ordering::SeqCst);
            }
            let event = self.events.len();
            if let Some(id) = decision["lease_id"].as_str().filter(|_| is_admitted) {
                let release_at = received + u64::try_from(LEASE_KEPT.as_micros()).unwrap();
                self.leases.push(Lease { id: id.to_owned(), key, event, release_at });
            }
            self.events.push(Event {
                daemon: self.daemon,
                policy,
                key,
                at: (decision["time"].as_f64().unwrap() * 1e6) as u64,
                received,
                latency: received - sent,
                is_admitted,
                is_local: decision["source"] == "fallback",
                is_degraded,
                used_until: u64::MAX,
            });
        }
    }

    /// Releases leases, repeatedly while the store that knows them is unavailable.
    fn release_due(&mut self) {
        let now = self.progress.now();
        let due = self.leases.iter().position(|lease| lease.release_at <= now);
        let Some(lease) = due.map(|index| self.leases.swap_remove(index)) else { return };
        let event = &mut self.events[lease.event];
        event.used_until = event.used_until.min(now);
        let (name, key, id) = (POLICIES[SLOTS].name, lease.key, &lease.id);
        let body = format!(r#"{{"policy":"{name}","key":"user:{key}","lease_id":"{id}"}}"#);
        if self.client.send("POST /v1/release", &HOST, &body).status == 503 {
            let release_at = self.progress.now() + 500_000;
            self.leases.push(Lease { release_at, ..lease });
        }
    }
}

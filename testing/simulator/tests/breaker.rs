//! The circuit breaker of each node: which requests it rejects, how soon, and how long after a fault all
//! requests are answered again. With `--nocapture`, the tests print the figures of DESIGN.md.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use support::ms;
use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Operation, Policy, Request};
use tollgate_redis::{BreakerState, BreakerStats, RedisOptions, RedisStore, Reply, TimedRequest};
use tollgate_simulator::{
    Cluster, Data, Partition, Refusal, ReplyFault, Server, Simulation, World,
};
use tollgate_state::{FailureKind, Key, StoreError};

const CHECK: Operation = Operation::Check { lease: None };
const DEADLINE: Duration = ms(15);
/// The time between two requests.
const INTERVAL: Duration = ms(2);
/// The clients run at whole milliseconds.
const TICK: Duration = ms(1);
/// How long the store runs before a fault, and after it.
const BEFORE: Duration = ms(1_500);
const AFTER: Duration = ms(3_000);

/// A request and its end.
#[derive(Clone, Debug)]
struct Sent {
    /// The time since the start of the traffic.
    at: Duration,
    took: Duration,
    key: String,
    /// Whether it was admitted; `None` if it was late.
    result: Option<Result<bool, FailureKind>>,
}

impl Sent {
    fn is_answered(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }

    fn is_rejected(&self) -> bool {
        self.result == Some(Err(FailureKind::BreakerOpen))
    }
}

fn policy() -> Policy {
    "1000000/d fixed".parse().unwrap()
}

/// Sends a request with these keys.
async fn send(store: &RedisStore, keys: &[String], operation: Operation) -> Sent {
    let policy = policy();
    let check = |key| Check { policy: &policy, key, cost: Cost::ONE };
    let checks: Vec<_> = keys.iter().map(|key| check(key.as_bytes())).collect();
    let request = Request { operation, checks: &checks, request_id: None };
    let start = Instant::now();
    let timed = TimedRequest { request, deadline: start + DEADLINE };
    let result = match store.decide_by(&[timed]).await.remove(0) {
        Reply::Answer(Ok(answer)) => Some(Ok(answer.allowed())),
        Reply::Answer(Err(StoreError::Unavailable(failure))) => Some(Err(failure.kind)),
        Reply::Answer(Err(error)) => unreachable!("{error}"),
        Reply::Late(_) => None,
    };
    Sent { at: Duration::ZERO, took: start.elapsed(), key: keys.join(" "), result }
}

/// Sends requests at a constant rate, each with one of 64 keys.
async fn run_traffic(store: RedisStore, length: Duration) -> Vec<Sent> {
    let start = Instant::now();
    let mut requests = Vec::new();
    for number in 0..length.as_millis() / INTERVAL.as_millis() {
        let at = INTERVAL * u32::try_from(number).unwrap();
        tokio::time::sleep_until(start + at).await;
        let (store, keys) = (store.clone(), [format!("key:{}", number % 64)]);
        let request = async move { Sent { at, ..send(&store, &keys, CHECK).await } };
        requests.push(tokio::spawn(request));
    }
    let mut sent = Vec::new();
    for request in requests {
        sent.push(request.await.unwrap());
    }
    sent
}

async fn open(world: &World, url: &str) -> RedisStore {
    world.links().set_latency(Duration::from_micros(100), Duration::from_micros(100));
    let store = RedisStore::open(url, world.options()).unwrap();
    store.ready().await.unwrap();
    // All connections are up.
    tokio::time::sleep(ms(10)).await;
    store
}

async fn open_cluster(world: &World) -> (Cluster, RedisStore) {
    let cluster = world.start_cluster(3, 0);
    let store = open(world, &cluster.url()).await;
    (cluster, store)
}

/// The breaker of a server.
fn breaker(store: &RedisStore, server: &Server) -> BreakerStats {
    let mut nodes = store.nodes().into_iter();
    nodes.find(|node| node.address.starts_with(&server.host())).unwrap().breaker
}

/// The traffic during a fault, and what happened.
struct Run {
    sent: Vec<Sent>,
    fault: Duration,
    breaker: BreakerStats,
    /// The attempts to connect to the server that failed, by when they were made.
    dials: Vec<Duration>,
}

/// Runs traffic, with a fault of this length in the middle.
async fn run_fault(
    world: &World,
    (store, server): (&RedisStore, &Server),
    length: Duration,
    begin: impl Fn(&Server),
    end: impl Fn(&Server),
) -> Run {
    let traffic = tokio::spawn(run_traffic(store.clone(), BEFORE + length + AFTER));
    tokio::time::sleep(BEFORE).await;
    let start = world.elapsed();
    begin(server);
    tokio::time::sleep(length).await;
    end(server);
    let sent = traffic.await.unwrap();
    let dials = server.stats().dials.into_iter().map(|(at, _)| at);
    let dials = dials.filter(|at| *at >= start).map(|at| at - start).collect();
    Run { sent, fault: length, breaker: breaker(store, server), dials }
}

impl Run {
    /// Returns how long after the fault the last request failed.
    fn recovery(&self) -> Duration {
        let last = self.sent.iter().rfind(|sent| !sent.is_answered());
        last.map_or(Duration::ZERO, |last| last.at.saturating_sub(BEFORE + self.fault))
    }

    fn count(&self, is_counted: impl Fn(&&Sent) -> bool) -> usize {
        self.sent.iter().filter(is_counted).count()
    }

    /// Asserts what applies to every fault, and prints the figures.
    #[track_caller]
    fn check(&self, name: &str, max_recovery: Duration) {
        let (recovery, rejected) = (self.recovery(), self.count(|sent| sent.is_rejected()));
        let waiting = self.count(|sent| !sent.is_answered() && sent.took > Duration::ZERO);
        println!(
            "| {name} | {:?} | {waiting} | {rejected} | {} | {recovery:?} |",
            self.fault, self.breaker.opened
        );
        assert!(recovery <= max_recovery, "{name}: {recovery:?}");
        for sent in &self.sent {
            assert!(sent.took <= DEADLINE + TICK, "{name}: {sent:?}");
            assert!(!sent.is_rejected() || sent.took == Duration::ZERO, "{name}: {sent:?}");
            assert!(sent.at >= BEFORE - DEADLINE || sent.is_answered(), "{name}: {sent:?}");
        }
        assert_eq!(self.breaker.state, BreakerState::Closed, "{name}");
        // The back-off of connections has grown to a second by then.
        let period = ms(2_000)..self.fault;
        let dials = self.dials.iter().filter(|&&at| period.contains(&at)).count();
        let seconds = self.fault.saturating_sub(ms(2_000)).as_secs();
        assert!(dials <= usize::try_from(seconds).unwrap() + 1, "{name}: {:?}", self.dials);
    }
}

#[test]
fn a_pause_of_100_ms_costs_little_more_than_100_ms() {
    Simulation::new(1).run(async |world| {
        let server = world.start_server();
        let store = open(&world, &server.url()).await;
        let target = (&store, &server);
        let run = run_fault(&world, target, ms(100), Server::pause, Server::resume).await;
        run.check("pause", ms(5));
        assert_eq!(run.breaker.opened, 1);
        assert_eq!(&*run.breaker.cause, "no reply within 30ms");
        assert!(run.breaker.last_opening.unwrap() < ms(80), "{:?}", run.breaker);
        // What was charged and answered too late was taken back, although the breaker was open.
        let admitted = run.count(|sent| sent.result == Some(Ok(true)));
        let mut used = 0;
        for number in 0..64 {
            let key = format!("key:{number}");
            let key = Key::new(key.as_bytes()).unwrap();
            used += store.inspect(&policy(), key).await.unwrap().limits[0].used;
        }
        assert_eq!(used, u64::try_from(admitted).unwrap());
        assert!(store.stats().reconciled > 0);
    });
}

/// A fault of a server.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Pause,
    Partition,
    Latency(Duration),
    Refusal(Refusal),
    ClusterDown,
    /// A crash, and then `LOADING`.
    Crash,
}

impl Fault {
    fn begin(self, server: &Server) {
        match self {
            Fault::Pause => server.pause(),
            Fault::Partition => server.links().partition(Partition::Both),
            Fault::Latency(latency) => server.links().set_latency(latency, Duration::ZERO),
            Fault::Refusal(refusal) => server.set_refusal(Some(refusal)),
            Fault::ClusterDown => server.set_cluster_down(true),
            Fault::Crash => server.crash(Data::Kept),
        }
    }

    fn end(self, server: &Server) {
        match self {
            Fault::Pause => server.resume(),
            Fault::Partition => server.links().unblock(),
            Fault::Latency(_) => {
                server.links().set_latency(Duration::from_micros(100), Duration::from_micros(100));
            }
            Fault::Refusal(_) => server.set_refusal(None),
            Fault::ClusterDown => server.set_cluster_down(false),
            Fault::Crash => server.restart(ms(300)),
        }
    }
}

#[test]
fn after_a_fault_of_a_server_all_requests_are_answered_soon() {
    for (fault, max_recovery, opens) in [
        (Fault::Pause, ms(1_700), true),
        (Fault::Partition, ms(1_700), true),
        (Fault::Refusal(Refusal::OutOfMemory), ms(1_600), true),
        (Fault::Refusal(Refusal::DiskError), ms(1_600), true),
        (Fault::Refusal(Refusal::Busy), ms(1_600), true),
        (Fault::Refusal(Refusal::TooFewReplicas), ms(1_600), true),
        // The connection is replaced.
        (Fault::Refusal(Refusal::ReadOnly), ms(1_300), false),
        (Fault::Crash, ms(1_700), false),
    ] {
        for length in [ms(500), ms(5_000)] {
            let run = Simulation::new(1).run(async |world| {
                let server = world.start_server();
                let store = open(&world, &server.url()).await;
                let (begin, end) =
                    (|server: &Server| fault.begin(server), |server: &Server| fault.end(server));
                run_fault(&world, (&store, &server), length, begin, end).await
            });
            run.check(&format!("{fault:?}"), max_recovery);
            assert_eq!(run.breaker.opened, u64::from(opens), "{fault:?}");
        }
    }
}

#[test]
fn only_the_keys_of_a_slow_node_are_rejected() {
    for (fault, max_recovery) in [
        // Late, but no stall.
        (Fault::Latency(ms(9)), ms(1_600)),
        (Fault::Latency(ms(20)), ms(1_600)),
        (Fault::Latency(ms(200)), ms(2_000)),
        (Fault::Latency(ms(500)), ms(2_600)),
        (Fault::ClusterDown, ms(1_600)),
    ] {
        Simulation::new(1).run(async |world| {
            let (cluster, store) = open_cluster(&world).await;
            let slow = &cluster.nodes()[0];
            let length = ms(5_000);
            let (begin, end) =
                (|server: &Server| fault.begin(server), |server: &Server| fault.end(server));
            let run = run_fault(&world, (&store, slow), length, begin, end).await;
            run.check(&format!("{fault:?} of one node of three"), max_recovery);
            let own: BTreeSet<&str> =
                run.sent.iter().filter(|sent| sent.is_rejected()).map(|sent| &*sent.key).collect();
            assert!(10 < own.len() && own.len() < 40, "{own:?}");
            for sent in &run.sent {
                assert!(sent.is_answered() || own.contains(&*sent.key), "{sent:?}");
            }
            // The calls before the fault count for a second.
            let during = BEFORE + ms(1_100)..BEFORE + length;
            let waiting = run.count(|sent| during.contains(&sent.at) && sent.took > DEADLINE / 2);
            assert_eq!(waiting, 0);
        });
    }
}

#[test]
fn no_node_is_asked_for_a_request_over_partitions_of_which_one_is_rejected() {
    Simulation::new(1).run(async |world| {
        let (cluster, store) = open_cluster(&world).await;
        let nodes = cluster.nodes();
        let keys: Vec<String> = (0..8).map(|number| format!("key:{number}")).collect();
        assert_eq!(send(&store, &keys, CHECK).await.result, Some(Ok(true)));
        nodes[0].pause();
        assert!(!send(&store, &keys, CHECK).await.is_answered());
        tokio::time::sleep(DEADLINE).await;
        assert_eq!(breaker(&store, &nodes[0]).state, BreakerState::Open);
        let scripts = || nodes.iter().map(|node| node.stats().scripts).collect::<Vec<_>>();
        let before = scripts();
        for operation in [CHECK, Operation::Peek] {
            for _ in 0..10 {
                let sent = send(&store, &keys, operation).await;
                assert!(sent.is_rejected() && sent.took == Duration::ZERO, "{sent:?}");
            }
        }
        tokio::time::sleep(TICK).await;
        assert_eq!(scripts(), before);
        assert_eq!(breaker(&store, &nodes[0]).rejected, 20);
        assert!(nodes[1..].iter().all(|node| breaker(&store, node).rejected == 0));
        nodes[0].resume();
        tokio::time::sleep(ms(3)).await;
        assert_eq!(send(&store, &keys, CHECK).await.result, Some(Ok(true)));
        for key in &keys {
            let key = Key::new(key.as_bytes()).unwrap();
            assert_eq!(store.inspect(&policy(), key).await.unwrap().limits[0].used, 2);
        }
    });
}

#[test]
fn operations_that_do_not_decide_are_sent_to_a_server_that_rejects_checks() {
    Simulation::new(1).run(async |world| {
        let server = world.start_server();
        let store = open(&world, &server.url()).await;
        server.set_refusal(Some(Refusal::OutOfMemory));
        let keys = ["key".to_owned()];
        for _ in 0..20 {
            let sent = send(&store, &keys, CHECK).await;
            assert_eq!(sent.result, Some(Err(FailureKind::OutOfMemory)));
        }
        assert!(send(&store, &keys, CHECK).await.is_rejected());
        for operation in
            [Operation::Reset, Operation::Block { span: None }, Operation::Refund { time: None }]
        {
            let sent = send(&store, &keys, operation).await;
            assert_eq!(sent.result, Some(Err(FailureKind::OutOfMemory)), "{operation:?}");
        }
        server.set_refusal(None);
        assert!(send(&store, &keys, CHECK).await.is_rejected());
        assert_eq!(send(&store, &keys, Operation::Reset).await.result, Some(Ok(true)));
    });
}

#[test]
fn without_traffic_it_closes_all_the_same() {
    Simulation::new(1).run(async |world| {
        let server = world.start_server();
        let store = open(&world, &server.url()).await;
        server.set_refusal(Some(Refusal::Busy));
        for _ in 0..20 {
            send(&store, &["key".to_owned()], CHECK).await;
        }
        tokio::time::sleep(ms(60_000)).await;
        assert_eq!(breaker(&store, &server).state, BreakerState::Open);
        // A probe each second, besides the requests.
        let calls = server.stats().commands["fcall"];
        assert!((20 + 60..20 + 70).contains(&calls), "{calls}");
        server.set_refusal(None);
        tokio::time::sleep(ms(1_600)).await;
        assert_eq!(breaker(&store, &server).state, BreakerState::Closed);
        assert_eq!(breaker(&store, &server).opened, 1);
    });
}

#[test]
fn a_connection_on_which_a_probe_is_not_answered_is_replaced() {
    Simulation::new(1).run(async |world| {
        let server = world.start_server();
        let store = open(&world, &server.url()).await;
        server.set_refusal(Some(Refusal::OutOfMemory));
        for _ in 0..20 {
            send(&store, &["key".to_owned()], CHECK).await;
        }
        server.set_refusal(None);
        server.fail_reply(ReplyFault::Stall);
        tokio::time::sleep(ms(2_000)).await;
        assert_eq!(breaker(&store, &server).state, BreakerState::Closed);
        assert!(send(&store, &["key".to_owned()], CHECK).await.is_answered());
    });
}

#[test]
fn a_store_without_breakers_sends_every_request() {
    Simulation::new(1).run(async |world| {
        let server = world.start_server();
        let options = RedisOptions { breaker: false, ..world.options() };
        let store = RedisStore::open(&server.url(), options).unwrap();
        store.ready().await.unwrap();
        server.set_refusal(Some(Refusal::OutOfMemory));
        for _ in 0..100 {
            let sent = send(&store, &["key".to_owned()], CHECK).await;
            assert_eq!(sent.result, Some(Err(FailureKind::OutOfMemory)));
        }
    });
}

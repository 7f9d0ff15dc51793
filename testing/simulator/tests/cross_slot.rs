//! Requests over several partitions under faults: a request that is admitted under an id is charged
//! once in every partition, whichever replies are lost and however often it is repeated.
//!
//! `cargo xtask simulate --seeds 10000` runs that many seeds, `--seed 7` only that one.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Check, Cost, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore, Reply, TimedRequest};
use tollgate_simulator::{Data, Partition, ReplyFault, Server, Simulation, World};
use tollgate_store::Key;

const CHECK: Operation = Operation::Check { lease: None };
const REQUESTS: u64 = 16;
/// The limit that all requests share.
const LIMIT: u64 = 5;
/// Within the time that a request id is remembered.
const MAX_PAUSE: Duration = Duration::from_millis(400);

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TOLLGATE_SEEDS").unwrap_or(200),
    }
}

fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, tollgate_core::parse_limits(limits).unwrap()).unwrap()
}

struct Policies {
    shared: Policy,
    own: Policy,
}

/// Sends a request once; returns whether it was admitted, if the store answered in time.
async fn send(
    store: &RedisStore,
    policies: &Policies,
    id: u64,
    deadline: Duration,
) -> Option<bool> {
    let own_key = format!("own:{id}");
    let shared = Check { policy: &policies.shared, key: b"shared", cost: Cost::ONE };
    let own = Check { policy: &policies.own, key: own_key.as_bytes(), cost: Cost::ONE };
    // The order of the checks determines the partition that decides.
    let checks = if id.is_multiple_of(2) { [shared, own] } else { [own, shared] };
    let id = format!("id:{id}");
    let request = Request { operation: CHECK, checks: &checks, request_id: Some(id.as_bytes()) };
    let timed = TimedRequest { request, deadline: Instant::now() + deadline };
    let reply = store.decide_by(&[timed]).await.remove(0);
    match reply {
        Reply::Answer(answer) => answer.ok().map(|answer| answer.allowed()),
        Reply::Late(_) => None,
    }
}

/// Sends a request until it is answered, from different stores and sometimes from two at once. Returns
/// whether it was admitted.
async fn send_until_answered(world: World, stores: Vec<RedisStore>, id: u64) -> bool {
    let policies =
        Policies { shared: named("shared", "5/d fixed"), own: named("own", "9/d fixed") };
    let mut rng = world.rng();
    tokio::time::sleep(Duration::from_millis(rng.u64(0..2_000))).await;
    let mut answer = None;
    // After an admission, a repeat gets the same answer.
    let mut repeats = 0;
    while repeats < 2 {
        let deadline = Duration::from_millis(rng.u64(1..60));
        let store = &stores[rng.usize(..stores.len())];
        let now = if rng.u8(0..4) == 0 {
            let other = &stores[rng.usize(..stores.len())];
            let (first, second) = tokio::join!(
                send(store, &policies, id, deadline),
                send(other, &policies, id, deadline),
            );
            // One of two attempts may be denied before the other takes its tokens.
            first.max(second)
        } else {
            send(store, &policies, id, deadline).await
        };
        if answer == Some(true) {
            assert_ne!(now, Some(false), "id:{id} was admitted, and its repeat denied");
        }
        answer = answer.max(now);
        repeats += u8::from(answer == Some(true));
        if now == Some(false) && answer != Some(true) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(0..300))).await;
    }
    true
}

/// Causes faults that lose no data.
async fn cause_faults(world: World, servers: Vec<Server>) {
    let mut rng = world.rng();
    loop {
        let server = &servers[rng.usize(..servers.len())];
        match rng.u8(0..9) {
            0 => server.pause(),
            1 => server.crash(Data::Kept),
            2 => server.links().partition(Partition::Both),
            3 => server.links().partition(Partition::ToClient),
            4 => server.links().reset(),
            5 => server.flush_scripts(),
            6 => server.set_execution_time(Duration::from_micros(rng.u64(0..5_000))),
            7 => server.fail_reply(ReplyFault::Stall),
            _ => server.fail_reply(ReplyFault::Cut),
        }
        tokio::time::sleep(MAX_PAUSE * rng.u32(1..10) / 10).await;
        server.restart(Duration::from_millis(rng.u64(0..50)));
        server.links().unblock();
        server.resume();
        tokio::time::sleep(Duration::from_millis(rng.u64(0..100))).await;
    }
}

/// Returns what is used of a key's limit.
async fn used(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    loop {
        match store.inspect(policy, Key::new(key.as_bytes()).unwrap()).await {
            Ok(inspection) => return inspection.limits[0].used,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The numbers of requests that were admitted and of tokens that were charged.
async fn run(world: World) -> (u64, u64) {
    let cluster = world.start_cluster(3, 0);
    world.links().set_latency(Duration::from_micros(300), Duration::from_millis(2));
    let open = || {
        let call_timeout = Duration::from_millis(100);
        let options = RedisOptions { groups: Some(8), call_timeout, ..world.options() };
        RedisStore::open(&cluster.url(), options).unwrap()
    };
    let stores = vec![open(), open()];
    for store in &stores {
        store.ready().await.unwrap();
    }
    let faults = tokio::spawn(cause_faults(world.clone(), cluster.nodes()));
    let requests: Vec<_> = (0..REQUESTS)
        .map(|id| tokio::spawn(send_until_answered(world.clone(), stores.clone(), id)))
        .collect();
    let mut admitted = Vec::new();
    for request in requests {
        admitted.push(request.await.unwrap());
    }
    faults.abort();
    for server in cluster.nodes() {
        server.restart(Duration::ZERO);
        server.links().unblock();
        server.resume();
        server.set_execution_time(Duration::ZERO);
    }
    // Attempts in the background end.
    tokio::time::sleep(Duration::from_secs(40)).await;
    let (shared, own) = (named("shared", "5/d fixed"), named("own", "9/d fixed"));
    let charged = used(&stores[0], &shared, "shared").await;
    let mut own_charged = 0;
    for (id, admitted) in admitted.iter().enumerate() {
        let used = used(&stores[0], &own, &format!("own:{id}")).await;
        assert!(used <= 1, "id:{id} was charged {used} times");
        assert!(used == 1 || !admitted, "id:{id} was admitted and not charged");
        own_charged += used;
    }
    let count = admitted.iter().map(|admitted| u64::from(*admitted)).sum::<u64>();
    assert!(count <= LIMIT, "{count} were admitted");
    assert!(charged >= count, "{count} were admitted and {charged} charged");
    (count, charged.max(own_charged))
}

#[test]
fn a_request_that_is_admitted_under_an_id_is_charged_once_in_every_partition() {
    let (mut admitted, mut charged) = (0, 0);
    for seed in seeds() {
        let run = std::panic::catch_unwind(|| Simulation::new(seed).run(run));
        let Ok((run_admitted, run_charged)) = run else {
            panic!("seed {seed} failed; repeat it with `cargo xtask simulate --seed {seed}`")
        };
        admitted += run_admitted;
        charged += run_charged;
    }
    println!("{admitted} admitted, {charged} charged");
    assert!(admitted > 0);
}

//! A seed determines everything that happens. `TOLLGATE_SEEDS=10000` runs that many seeds.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use tollgate_algorithms::{Check, Cost, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_simulator::{Data, Partition, Refusal, ReplyFault, Server, Simulation, World};
use tollgate_state::Store;

const CHECK: Operation = Operation::Check { lease: None };
const TASKS: u64 = 8;
const CHECKS: u64 = 40;

/// How many requests were admitted, denied, and not decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    admitted: u32,
    denied: u32,
    failed: u32,
}

/// What happened in a simulation.
#[derive(Debug, PartialEq)]
struct Outcome {
    tally: Tally,
    hash: u64,
    log: Vec<String>,
}

fn seeds() -> u64 {
    std::env::var("TOLLGATE_SEEDS").map_or(20, |seeds| seeds.parse().unwrap())
}

/// Sends checks of a few keys, from several tasks at once.
async fn send_checks(world: &World, store: &RedisStore) -> Tally {
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (store, mut rng) = (store.clone(), world.rng());
            tokio::spawn(async move {
                let policy: Policy = "20/m".parse().unwrap();
                let mut tally = Tally::default();
                for _ in 0..CHECKS {
                    tokio::time::sleep(Duration::from_millis(rng.u64(0..100))).await;
                    let keys = [[rng.u8(0..5)], [rng.u8(0..5)]];
                    let check = |key| Check { policy: &policy, key, cost: Cost::ONE };
                    let checks = [check(&keys[0]), check(&keys[1])];
                    let count = if rng.bool() && keys[0] != keys[1] { 2 } else { 1 };
                    let id = rng.u64(..).to_le_bytes();
                    let request_id = rng.bool().then_some(&id[..]);
                    let request =
                        Request { operation: CHECK, checks: &checks[..count], request_id };
                    match &store.decide(&[request]).await[0] {
                        Ok(answer) if answer.allowed() => tally.admitted += 1,
                        Ok(_) => tally.denied += 1,
                        Err(_) => tally.failed += 1,
                    }
                }
                tally
            })
        })
        .collect();
    let mut sum = Tally::default();
    for task in tasks {
        let tally = task.await.unwrap();
        sum.admitted += tally.admitted;
        sum.denied += tally.denied;
        sum.failed += tally.failed;
    }
    sum
}

/// Causes random faults on servers, one after the other.
async fn cause_faults(world: World, servers: Vec<Server>) {
    let mut rng = world.rng();
    loop {
        tokio::time::sleep(Duration::from_millis(rng.u64(0..300))).await;
        let server = &servers[rng.usize(..servers.len())];
        let (fault, duration) = (rng.u8(0..10), Duration::from_millis(rng.u64(0..700)));
        match fault {
            0 => server.pause(),
            1 => server.crash(if rng.bool() { Data::Kept } else { Data::Lost }),
            2 => server.links().partition(Partition::Both),
            3 => server.links().partition(Partition::ToClient),
            4 => server.links().reset(),
            5 => server.flush_scripts(),
            6 => server.set_refusal(Some(Refusal::OutOfMemory)),
            7 => server.set_clock_offset(rng.i64(-1_000_000..1_000_000)),
            8 => server.set_execution_time(Duration::from_micros(rng.u64(0..5_000))),
            _ => server.fail_reply(ReplyFault::Cut),
        }
        tokio::time::sleep(duration).await;
        match fault {
            0 => server.resume(),
            1 => server.restart(Duration::from_millis(rng.u64(0..50))),
            2 | 3 => server.links().unblock(),
            6 => server.set_refusal(None),
            _ => {}
        }
    }
}

fn run(seed: u64, start: impl Fn(&World) -> (String, Vec<Server>)) -> Outcome {
    Simulation::new(seed).with_log().run(async |world| {
        let (url, servers) = start(&world);
        world.links().set_latency(Duration::from_micros(300), Duration::from_millis(2));
        world.links().set_splitting(true);
        let options =
            RedisOptions { groups: url.contains("+cluster").then_some(8), ..world.options() };
        let store = RedisStore::open(&url, options).unwrap();
        let _: Result<_, _> = store.ready().await;
        let faults = tokio::spawn(cause_faults(world.clone(), servers));
        let tally = send_checks(&world, &store).await;
        faults.abort();
        Outcome { tally, hash: world.trace_hash(), log: world.log() }
    })
}

/// Runs each seed twice; returns the sum of all decisions.
fn assert_deterministic(start: impl Fn(&World) -> (String, Vec<Server>)) {
    let (mut admitted, mut denied, mut failed) = (0, 0, 0);
    for seed in 0..seeds() {
        let (first, second) = (run(seed, &start), run(seed, &start));
        for (number, (a, b)) in first.log.iter().zip(&second.log).enumerate() {
            assert_eq!(a, b, "seed {seed}, event {number}");
        }
        assert_eq!(first, second, "seed {seed}");
        admitted += first.tally.admitted;
        denied += first.tally.denied;
        failed += first.tally.failed;
    }
    assert!(admitted > 0 && denied > 0 && failed > 0, "{admitted} {denied} {failed}");
}

#[test]
fn a_seed_determines_what_happens_on_a_server() {
    assert_deterministic(|world| {
        let server = world.start_server();
        (server.url(), vec![server])
    });
}

#[test]
fn a_seed_determines_what_happens_on_a_cluster() {
    assert_deterministic(|world| {
        let cluster = world.start_cluster(3, 1);
        (cluster.url(), cluster.nodes())
    });
}

#[test]
fn a_seed_determines_what_happens_behind_sentinels() {
    assert_deterministic(|world| {
        let server = world.start_server();
        let sentinels = world.start_sentinels(3, "main", &server);
        let hosts: Vec<String> =
            sentinels.iter().map(|sentinel| format!("{}:6379", sentinel.host())).collect();
        (format!("redis+sentinel://{}/main", hosts.join(",")), vec![server])
    });
}

#[test]
fn seeds_differ() {
    let start = |world: &World| {
        let server = world.start_server();
        (server.url(), vec![server])
    };
    assert_ne!(run(1, start).hash, run(2, start).hash);
}

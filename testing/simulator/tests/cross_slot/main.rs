//! Requests over several partitions under faults: a request that is admitted under an id is charged
//! once in every partition, whichever replies are lost and however often it is repeated.
//!
//! `cargo xtask simulate --seeds 10000` runs that many seeds, `--seed 7` only that one.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

mod settlements;
mod topology;
mod workload;

use std::ops::Range;
use std::time::Duration;

use tollgate_simulator::{Cluster, Data, Partition, ReplyFault, Server, Simulation, World};

use workload::{Faults, Workload};

/// Within the time that a request id is remembered.
const MAX_PAUSE: Duration = Duration::from_millis(400);

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TOLLGATE_SEEDS").unwrap_or(200),
    }
}

/// Runs a test with every seed; returns the results.
fn run_seeds<T>(test: impl AsyncFn(World) -> T + std::panic::RefUnwindSafe) -> Vec<T> {
    let run = |seed| {
        let run = std::panic::catch_unwind(|| Simulation::new(seed).run(&test));
        let repeat = format!("repeat it with `cargo xtask simulate --seed {seed}`");
        run.unwrap_or_else(|_| panic!("seed {seed} failed; {repeat}"))
    };
    seeds().map(run).collect()
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

/// Ends the effects of faults.
fn end_faults(cluster: &Cluster) {
    for server in cluster.nodes() {
        server.restart(Duration::ZERO);
        server.links().unblock();
        server.resume();
        server.set_execution_time(Duration::ZERO);
    }
}

/// Returns how many requests were admitted.
async fn run(world: World) -> u64 {
    let cluster = world.start_cluster(3, 0);
    world.links().set_latency(Duration::from_micros(300), Duration::from_millis(2));
    let stores = [workload::open(&world, &cluster).await, workload::open(&world, &cluster).await];
    let faults = tokio::spawn(cause_faults(world.clone(), cluster.nodes()));
    let workload = Workload::run(&world, &stores).await;
    faults.abort();
    end_faults(&cluster);
    workload.check(&stores[0], Faults::default()).await
}

#[test]
fn a_request_that_is_admitted_under_an_id_is_charged_once_in_every_partition() {
    let admitted: u64 = run_seeds(run).into_iter().sum();
    println!("{admitted} admitted");
    assert!(admitted > 0);
}

#[test]
fn a_charge_is_settled_once_in_every_partition() {
    let succeeded: Vec<usize> = run_seeds(settlements::run).into_iter().flatten().collect();
    let second = succeeded.iter().sum::<usize>();
    println!("{second} of {} by the second caller", succeeded.len());
    assert!(0 < second && second < succeeded.len());
}

//! Requests over several partitions while the cluster changes: slots move, replicas take over and lose
//! writes, and nodes refuse connections or commands.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use tollgate_algorithms::{Check, Cost};
use tollgate_redis::RedisStore;
use tollgate_simulator::{
    Cluster, Data, Partition, Refusal, ReplyFault, Server, Simulation, World,
};
use tollgate_testkit::slot_of;

use crate::run_seeds;
use crate::workload::{Faults, Policies, Workload, decide, open};

const PRIMARIES: usize = 3;
/// Within the time that a request id is remembered.
const MAX_FAULT_MS: u64 = 1_500;
/// How long the last fault takes.
const OUTAGE: Duration = Duration::from_secs(10);
/// After this time, the intervals between attempts to connect have grown to a second.
const BACKOFF: Duration = Duration::from_secs(2);
/// How long after a fault everything is as before.
const RECOVERY: Duration = Duration::from_secs(2);
/// Texts of the trace that show that these errors occurred in some seed.
const EXPECTED_ERRORS: &[&str] =
    &["ASK", "LOADING", "MOVED", "OOM", "READONLY", "TRYAGAIN", "rejected"];

/// A cluster with a replica for each primary.
#[derive(Clone)]
struct Nodes {
    world: World,
    cluster: Cluster,
}

impl Nodes {
    fn start(world: &World) -> Self {
        let cluster = world.start_cluster(PRIMARIES, 1);
        Nodes { world: world.clone(), cluster }
    }

    /// Returns the primary of a shard and its replica, by their own knowledge; `None` while they
    /// disagree.
    fn shard(&self, shard: usize) -> Option<(Server, Server)> {
        let (first, second) = (self.world.server(shard), self.world.server(PRIMARIES + shard));
        match (first.is_primary(), second.is_primary()) {
            (true, false) => Some((first, second)),
            (false, true) => Some((second, first)),
            _ => None,
        }
    }

    /// Moves a slot with keys to another primary. Halfway, keys are on both.
    async fn move_slot(&self, rng: &mut Rng, (from, to): (&Server, &Server)) {
        let keys = from.keys();
        if keys.is_empty() {
            return;
        }
        let slot = slot_of(&keys[rng.usize(..keys.len())].0);
        if self.cluster.owner(slot).index() != from.index() {
            return;
        }
        let migration = self.cluster.begin_move(slot, to);
        while migration.keys_left() > 0 {
            pause(rng, 300).await;
            migration.move_keys(rng.usize(1..3));
        }
        pause(rng, 300).await;
        migration.finish();
    }

    /// Promotes a replica that lacks some writes, after a crash of the primary or while it still runs.
    async fn fail_over(&self, rng: &mut Rng, (primary, replica): (&Server, &Server)) {
        replica.set_replication_lag(Duration::from_millis(rng.u64(0..100)));
        primary.set_gossip_delay(Duration::from_millis(rng.u64(0..200)));
        pause(rng, 300).await;
        if rng.bool() {
            primary.crash(Data::Kept);
            pause(rng, 500).await;
        }
        replica.promote();
        pause(rng, 300).await;
        primary.restart(Duration::from_millis(rng.u64(0..50)));
        // The old primary learns of it.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    /// Ends all faults of the nodes.
    fn repair(&self) {
        for node in self.cluster.nodes() {
            node.restart(Duration::ZERO);
            node.resume();
            node.links().unblock();
            node.clear_reply_faults();
            node.set_refusal(None);
            node.set_max_clients(None);
            node.set_cluster_down(false);
            node.set_execution_time(Duration::ZERO);
        }
    }
}

async fn pause(rng: &mut Rng, max_ms: u64) {
    tokio::time::sleep(Duration::from_millis(rng.u64(0..max_ms))).await;
}

/// Begins a fault of a node.
fn begin_fault(node: &Server, rng: &mut Rng) {
    let refusals = [
        Refusal::OutOfMemory,
        Refusal::ReadOnly,
        Refusal::TooFewReplicas,
        Refusal::DiskError,
        Refusal::PrimaryLost,
        Refusal::Busy,
    ];
    let replies = [
        ReplyFault::Stall,
        ReplyFault::Cut,
        ReplyFault::Truncate,
        ReplyFault::Delay(Duration::from_millis(rng.u64(1..200))),
    ];
    match rng.u8(0..12) {
        0 => node.pause(),
        1 => node.crash(Data::Kept),
        2 => node.links().partition(Partition::Both),
        3 => node.links().partition(Partition::ToClient),
        4 => {
            node.crash(Data::Kept);
            node.restart(Duration::from_millis(rng.u64(100..MAX_FAULT_MS)));
        }
        5 => {
            node.set_max_clients(Some(rng.usize(0..2)));
            node.links().reset();
        }
        6 => node.set_cluster_down(true),
        7 => node.flush_scripts(),
        8 => node.fail_reply(replies[rng.usize(..replies.len())]),
        _ => node.set_refusal(Some(refusals[rng.usize(..refusals.len())])),
    }
}

/// Causes one fault at a time for some seconds.
async fn cause_faults(nodes: Nodes, mut rng: Rng) -> Faults {
    // Without failovers, nothing is lost; while no slot moves, every request id is recorded.
    let (has_failovers, has_moves) = (rng.bool(), rng.bool());
    let mut faults = Faults::default();
    for _ in 0..8 {
        let shard = rng.usize(..PRIMARIES);
        let (Some((primary, replica)), Some((other, _))) =
            (nodes.shard(shard), nodes.shard((shard + 1) % PRIMARIES))
        else {
            pause(&mut rng, 100).await;
            continue;
        };
        match rng.u8(0..8) {
            0 if has_failovers => {
                faults.failovers += 1;
                nodes.fail_over(&mut rng, (&primary, &replica)).await;
            }
            0..3 if has_moves => {
                faults.slot_moves += 1;
                nodes.move_slot(&mut rng, (&primary, &other)).await;
            }
            _ => {
                begin_fault(&primary, &mut rng);
                pause(&mut rng, MAX_FAULT_MS).await;
            }
        }
        nodes.repair();
        pause(&mut rng, 300).await;
    }
    faults
}

/// Checks each of these keys, one after the other; returns how many were decided.
async fn check_keys(store: &RedisStore, keys: u8, timeout: Duration) -> u8 {
    let policies = Policies::new();
    let mut decided = 0;
    for number in 0..keys {
        let key = [number];
        let checks = [Check { policy: &policies.own, key: &key, cost: Cost::ZERO }];
        decided += u8::from(decide(store, &checks, None, timeout).await.is_some());
    }
    decided
}

/// Asserts that during a long fault each store tries at most once a second to connect to a node, and
/// that afterwards every request is answered.
async fn check_outage(world: &World, nodes: &Nodes, stores: &[RedisStore], rng: &mut Rng) {
    let node = &nodes.shard(rng.usize(..PRIMARIES)).unwrap().0;
    let start = world.elapsed();
    begin_fault(node, rng);
    if rng.bool() {
        node.links().reset();
    }
    while world.elapsed() < start + OUTAGE {
        for store in stores {
            check_keys(store, 4, Duration::from_millis(15)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let period = start + BACKOFF..start + OUTAGE;
    for server in nodes.cluster.nodes() {
        let dials = server.stats().dials;
        let clients: BTreeSet<usize> = dials.iter().map(|(_, client)| *client).collect();
        for client in clients {
            let own = dials.iter().filter(|(at, by)| *by == client && period.contains(at));
            let (count, max) = (own.count(), (OUTAGE - BACKOFF).as_secs() + 1);
            assert!(count <= usize::try_from(max).unwrap(), "{count} attempts to connect");
        }
    }
    nodes.repair();
    tokio::time::sleep(RECOVERY).await;
    for store in stores {
        assert_eq!(check_keys(store, 32, Duration::from_millis(100)).await, 32);
    }
}

/// Returns how many requests were admitted, and the number of failovers.
async fn run(world: World) -> (u64, u64) {
    let nodes = Nodes::start(&world);
    world.links().set_latency(Duration::from_micros(300), Duration::from_millis(2));
    let stores = [open(&world, &nodes.cluster).await, open(&world, &nodes.cluster).await];
    let mut rng = world.rng();
    let faults = tokio::spawn(cause_faults(nodes.clone(), rng.fork()));
    let workload = Workload::run(&world, &stores).await;
    let faults = faults.await.unwrap();
    tokio::time::sleep(RECOVERY).await;
    check_outage(&world, &nodes, &stores, &mut rng).await;
    let admitted = workload.check(&stores[0], faults).await;
    (admitted, faults.failovers)
}

#[test]
fn only_a_failover_loses_charges_and_stores_recover_from_every_fault() {
    let results = run_seeds(run);
    let admitted: u64 = results.iter().map(|(admitted, _)| admitted).sum();
    let failovers: u64 = results.iter().map(|(_, failovers)| failovers).sum();
    println!("{admitted} admitted, {failovers} failovers");
    assert!(admitted > 0);
}

#[test]
fn a_seed_determines_how_the_topology_changes() {
    let mut codes: BTreeSet<&str> = BTreeSet::new();
    for seed in 0..20 {
        let trace = || {
            Simulation::new(seed).with_log().run(async |world| {
                run(world.clone()).await;
                world.log()
            })
        };
        let (first, second) = (trace(), trace());
        for (number, (a, b)) in first.iter().zip(&second).enumerate() {
            assert_eq!(a, b, "seed {seed}, event {number}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
        let found = EXPECTED_ERRORS
            .iter()
            .copied()
            .filter(|code| first.iter().any(|line| line.contains(*code)));
        codes.extend(found);
    }
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), EXPECTED_ERRORS);
}

//! Settlements of charges in two partitions under faults: two callers settle each charge with other costs, and
//! repeat that until it is answered. One of them succeeds, and both partitions have its costs.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Operation, Policy, Request, RequestError};
use tollgate_redis::{RedisStore, Reply, TimedRequest};
use tollgate_simulator::World;
use tollgate_state::StoreError;

use crate::workload::{Policies, decide, open, used};

const REQUESTS: u64 = 8;
const ESTIMATE: [u32; 2] = [4, 4];
/// The costs that the callers settle: one part falls, the other rises.
const ACTUAL: [[u32; 2]; 2] = [[1, 5], [6, 2]];

fn checks<'a>(policy: &'a Policy, keys: &'a [String; 2], costs: [u32; 2]) -> [Check<'a>; 2] {
    let check = |index: usize| {
        let (key, cost) = (keys[index].as_bytes(), Cost::from(costs[index]));
        Check { policy, key, cost }
    };
    [check(0), check(1)]
}

/// Settles until there is an answer; returns whether this caller's costs count.
async fn settle(world: &World, stores: &[RedisStore], checks: &[Check<'_>], id: &[u8]) -> bool {
    let mut rng = world.rng();
    loop {
        let timeout = Duration::from_millis(rng.u64(1..60));
        let operation = Operation::Settle;
        let request = Request { operation, checks, request_id: Some(id) };
        let deadline = Instant::now() + timeout;
        let store = &stores[rng.usize(..stores.len())];
        let reply = store.decide_by(&[TimedRequest { request, deadline }]).await.remove(0);
        match reply {
            Reply::Answer(Ok(answer)) => {
                let granted = answer.decisions.iter().map(|decision| decision.granted);
                assert!(granted.eq(checks.iter().map(|check| check.cost.get())));
                return true;
            }
            Reply::Answer(Err(StoreError::Request(error))) => {
                assert_eq!(error, RequestError::ChargeSettled);
                return false;
            }
            Reply::Answer(Err(StoreError::Unavailable(_))) | Reply::Late(_) => {}
            Reply::Answer(Err(error)) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(0..50))).await;
    }
}

/// Charges two keys and settles the charge; returns the index of the caller that succeeded.
async fn charge_and_settle(world: World, stores: Vec<RedisStore>, number: u64) -> usize {
    let policy = Policies::new().own;
    let (keys, id) = (keys(number), format!("settled:{number}"));
    let mut rng = world.rng();
    let estimate = checks(&policy, &keys, ESTIMATE);
    loop {
        let (store, timeout) = (&stores[rng.usize(..stores.len())], rng.u64(1..60));
        let timeout = Duration::from_millis(timeout);
        match decide(store, &estimate, Some(id.as_bytes()), timeout).await {
            Some(true) => break,
            // Another attempt holds the tokens, and takes them back.
            Some(false) | None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    let [first, second] = ACTUAL.map(|costs| checks(&policy, &keys, costs));
    let (first, second) = tokio::join!(
        settle(&world, &stores, &first, id.as_bytes()),
        settle(&world, &stores, &second, id.as_bytes()),
    );
    assert!(first != second, "of {number}, one settlement counts: {first}, {second}");
    usize::from(second)
}

fn keys(number: u64) -> [String; 2] {
    [format!("first:{number}"), format!("second:{number}")]
}

/// Settles charges while faults occur; returns the callers that succeeded.
pub(crate) async fn run(world: World) -> Vec<usize> {
    let cluster = world.start_cluster(3, 0);
    world.links().set_latency(Duration::from_micros(300), Duration::from_millis(2));
    let stores = vec![open(&world, &cluster).await, open(&world, &cluster).await];
    let faults = tokio::spawn(crate::cause_faults(world.clone(), cluster.nodes()));
    let settle = |number| tokio::spawn(charge_and_settle(world.clone(), stores.clone(), number));
    let charges: Vec<_> = (0..REQUESTS).map(settle).collect();
    let mut succeeded = Vec::new();
    for charge in charges {
        succeeded.push(charge.await.unwrap());
    }
    faults.abort();
    crate::end_faults(&cluster);
    let policy = Policies::new().own;
    for (number, caller) in (0..).zip(&succeeded) {
        for (key, cost) in keys(number).iter().zip(ACTUAL[*caller]) {
            assert_eq!(used(&stores[0], &policy, key).await, u64::from(cost), "{key}");
        }
    }
    succeeded
}

//! Every row of the conformance suite, over a simulated server and a simulated cluster.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use tollgate_conformance::rows::run_all;
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_simulator::{Simulation, World};
use tollgate_state::ManualClock;

/// Runs all rows, each section in its own namespace, with one partition on a cluster.
async fn assert_every_row_holds(world: &World, url: &str, short_log: Option<u16>) {
    let (client, clock, mut opened) = (world.start_client(), ManualClock::default(), 0);
    let open = || {
        opened += 1;
        let options = RedisOptions {
            namespace: format!("n{opened}"),
            groups: url.contains("+cluster").then_some(1),
            connections: 1,
            clock: Some(clock.clone()),
            short_log,
            ..client.options()
        };
        RedisStore::open(url, options).unwrap()
    };
    let report = run_all(open, |time| clock.set(time)).await.unwrap();
    println!("{report}");
    assert!(report.failures.is_empty(), "\n{report}");
    assert!(report.rows > 1_900);
}

#[test]
fn every_row_holds_on_a_server() {
    Simulation::new(1).run(async |world| {
        let server = world.start_server();
        assert_every_row_holds(&world, &server.url(), Some(3)).await;
        assert!(server.keys().iter().all(|(_, expiry)| expiry.is_some()));
        assert!(server.stats().scripts > 10_000);
    });
}

#[test]
fn every_row_holds_on_a_cluster() {
    Simulation::new(2).run(async |world| {
        let cluster = world.start_cluster(3, 1);
        assert_every_row_holds(&world, &cluster.url(), None).await;
        for node in cluster.nodes() {
            assert!(node.keys().iter().all(|(_, expiry)| expiry.is_some()));
            assert!(node.stats().scripts > 1_000 || !node.is_primary());
        }
    });
}

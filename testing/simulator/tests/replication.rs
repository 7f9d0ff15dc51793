//! Replication, promotion and sentinels.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use support::{ms, send, send_to};
use tollgate_algorithms::{Check, Cost, Operation, Policy, Request};
use tollgate_redis::RedisStore;
use tollgate_simulator::{Client, Data, Server, Simulation, World};
use tollgate_state::{Store, StoreError};

/// Runs a test on a primary and a replica that lags by 100 ms.
fn run(test: impl AsyncFnOnce(World, Client, Server, Server)) {
    Simulation::new(1).run(async |world| {
        let primary = world.start_server();
        let replica = world.start_replica(&primary);
        replica.set_replication_lag(ms(100));
        test(world.clone(), world.start_client(), primary, replica).await;
    });
}

/// Spends one token of a key; returns what remains.
async fn check(store: &RedisStore) -> Result<u64, StoreError> {
    let policy: Policy = "5/h".parse().unwrap();
    let checks = [Check { policy: &policy, key: b"k", cost: Cost::ONE }];
    let operation = Operation::Check { lease: None };
    let request = Request { operation, checks: &checks, request_id: None };
    let answer = store.decide(&[request]).await.pop().unwrap();
    answer.map(|answer| answer.decisions[0].remaining)
}

#[test]
fn a_replica_lags_and_rejects_writes() {
    run(async |_, client, primary, replica| {
        let mut connection = client.connect(&primary).await.unwrap();
        for command in ["SET a 1 PX 60000", "HSET h x 1", "ZADD z 1 m", "SET s x", "DEL a"] {
            send(&mut connection, command).await;
            tokio::time::sleep(ms(30)).await;
        }
        // The lag is 100 ms, so the first two writes have arrived.
        assert_eq!(replica.keys().len(), 2);
        let error = "READONLY You can't write against a read only replica.";
        assert_eq!(send_to(&client, &replica, "SET a 1").await, error);
        assert_eq!(send_to(&client, &replica, "GET a").await, "1");
        tokio::time::sleep(ms(100)).await;
        assert_eq!(replica.keys(), primary.keys());
        let role = client.connect(&replica).await.unwrap().command(&["ROLE"]).await.unwrap();
        assert_eq!(
            role.array()[..2].iter().map(|part| part.text()).collect::<Vec<_>>(),
            ["slave".to_owned(), primary.host()]
        );
    });
}

#[test]
fn a_promoted_replica_has_lost_what_had_not_arrived() {
    run(async |_, client, primary, replica| {
        let mut old = client.connect(&primary).await.unwrap();
        send(&mut old, "SET a 1").await;
        tokio::time::sleep(ms(150)).await;
        send(&mut old, "SET b 1").await;
        replica.promote();
        tokio::time::sleep(ms(150)).await;
        assert!(replica.is_primary() && primary.is_primary());
        assert_eq!((primary.keys().len(), replica.keys().len()), (2, 1));
        assert_eq!(send_to(&client, &replica, "SET c 1").await, "OK");
        assert_eq!(send(&mut old, "SET d 1").await, "OK", "both accept writes");
        primary.replicate(&replica);
        // The connection stays open.
        assert!(send(&mut old, "SET d 1").await.starts_with("READONLY"));
        assert_eq!(primary.keys(), replica.keys());
        assert_eq!(send_to(&client, &replica, "SET e 1").await, "OK");
        assert_eq!(send(&mut old, "GET e").await, "1");
    });
}

#[test]
fn a_replica_keeps_what_its_primary_keeps_whatever_its_clock() {
    run(async |_, client, primary, replica| {
        replica.set_clock_offset(3_600_000_000);
        replica.set_replication_lag(ms(0));
        let mut connection = client.connect(&primary).await.unwrap();
        for command in ["HSET h a 1", "PEXPIRE h 60000", "HSET h b 2", "SET s v PX 10"] {
            send(&mut connection, command).await;
        }
        tokio::time::sleep(ms(20)).await;
        // The string has expired on the primary, but its replica was not told.
        replica.set_clock_offset(-1_000_000);
        assert_eq!(replica.keys().len(), 2);
        assert_eq!(send(&mut connection, "HSET s c 3").await, "1");
        let mut connection = client.connect(&replica).await.unwrap();
        assert_eq!(send(&mut connection, "HGET h a").await, "1");
        assert_eq!(send(&mut connection, "HGET s c").await, "3");
    });
}

#[test]
fn a_restarted_server_and_its_replicas_agree() {
    run(async |_, client, primary, replica| {
        send_to(&client, &primary, "SET a 1").await;
        replica.crash(Data::Lost);
        replica.restart(ms(0));
        assert_eq!(replica.keys().len(), 1);
        primary.crash(Data::Lost);
        assert_eq!(replica.keys().len(), 1);
        primary.restart(ms(0));
        assert_eq!((primary.keys().len(), replica.keys().len()), (0, 0));
    });
}

#[test]
fn sentinels_report_a_promoted_replica_after_a_delay() {
    run(async |world, client, primary, replica| {
        let sentinels = world.start_sentinels(2, "main", &primary);
        sentinels[1].set_gossip_delay(ms(5_000));
        let master = async |sentinel: &Server| {
            let mut connection = client.connect(sentinel).await.unwrap();
            let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"];
            connection.command(&words).await.unwrap().array()[0].text()
        };
        assert_eq!(master(&sentinels[0]).await, primary.host());
        replica.promote();
        assert_eq!(master(&sentinels[0]).await, replica.host());
        assert_eq!(master(&sentinels[1]).await, primary.host());
        tokio::time::sleep(ms(5_000)).await;
        assert_eq!(master(&sentinels[1]).await, replica.host());
        let error = send_to(&client, &sentinels[0], "GET k").await;
        assert!(error.starts_with("ERR unknown command 'GET'"), "{error}");
    });
}

#[test]
fn the_store_follows_the_sentinels_and_repeats_lost_charges() {
    run(async |world, _, primary, replica| {
        let sentinel = world.start_sentinels(1, "main", &primary).remove(0);
        let url = format!("redis+sentinel://{}:6379/main", sentinel.host());
        let store = RedisStore::open(&url, world.options()).unwrap();
        assert_eq!(check(&store).await.unwrap(), 4);
        tokio::time::sleep(ms(200)).await;
        assert_eq!(check(&store).await.unwrap(), 3);
        primary.crash(Data::Kept);
        replica.promote();
        tokio::time::sleep(ms(2_000)).await;
        assert_eq!(check(&store).await.unwrap(), 3, "one charge is lost");
        let charges = replica.calls().into_iter().filter(|call| !call.keys.is_empty());
        assert_eq!(charges.count(), 1);
    });
}

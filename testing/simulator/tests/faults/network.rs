//! Latency, splitting, partitions, resets and names.

use std::io::ErrorKind::{ConnectionReset, TimedOut};

use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_simulator::Partition;

use super::{assert_pending, ms, run, send, text};

#[test]
fn messages_take_their_latency_in_each_direction_and_keep_their_order() {
    run(async |world, server, client| {
        client.link_to(&server).set_latency(ms(5), ms(0));
        let mut connection = client.connect(&server).await.unwrap();
        assert_eq!(world.elapsed(), ms(10));
        assert_eq!(server.stats().accepted, [ms(5)]);
        assert_eq!(send(&mut connection, "PING").await.unwrap(), "PONG");
        assert_eq!(world.elapsed(), ms(20));
        server.links().set_latency(ms(1), ms(50));
        for number in 0..20 {
            connection.send(&["PING", &number.to_string()]).await.unwrap();
        }
        for number in 0..20 {
            assert_eq!(connection.receive().await.unwrap().text(), number.to_string());
        }
        assert!(world.elapsed() < ms(130));
    });
}

#[test]
fn split_messages_arrive_completely() {
    run(async |world, server, client| {
        world.links().set_latency(ms(1), ms(3));
        world.links().set_splitting(true);
        let value = "0123456789".repeat(1_000);
        let mut connection = client.connect(&server).await.unwrap();
        let before = world.elapsed();
        assert_eq!(send(&mut connection, &format!("SET k {value}")).await.unwrap(), "OK");
        assert!(world.elapsed() - before > ms(6), "a split message takes longer");
        assert_eq!(send(&mut connection, "GET k").await.unwrap(), value);
    });
}

#[test]
fn messages_wait_for_the_end_of_a_partition() {
    run(async |world, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        server.links().partition(Partition::ToServer);
        connection.send(&["SET", "k", "v"]).await.unwrap();
        assert_pending(ms(1_000), connection.receive()).await;
        assert!(server.keys().is_empty());
        assert_pending(ms(1_000), client.connect(&server)).await;
        assert_eq!(server.stats().accepted.len(), 1);
        world.links().unblock();
        assert_eq!(text(connection.receive().await).unwrap(), "OK");
        assert_eq!(server.keys().len(), 1);
        assert!(client.connect(&server).await.is_ok());
    });
}

#[test]
fn replies_wait_for_the_end_of_a_partition_to_the_client() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        server.links().partition(Partition::ToClient);
        connection.send(&["SET", "k", "v"]).await.unwrap();
        assert_pending(ms(1_000), connection.receive()).await;
        assert_eq!(server.keys().len(), 1);
        server.links().unblock();
        assert_eq!(text(connection.receive().await).unwrap(), "OK");
    });
}

#[test]
fn unacknowledged_messages_are_lost_after_three_seconds() {
    for partition in [Partition::Both, Partition::ToServer, Partition::ToClient] {
        run(async |world, server, client| {
            let mut connection = client.connect(&server).await.unwrap();
            server.links().partition(partition);
            connection.send(&["SET", "k", "v"]).await.unwrap();
            assert_eq!(text(connection.receive().await), Err(TimedOut));
            assert_eq!(world.elapsed(), ms(3_000));
            // The server does not know that the connection is lost.
            assert_eq!(server.connections(), 1);
            server.links().unblock();
            tokio::time::sleep(ms(100)).await;
            assert_eq!(server.keys().len(), usize::from(partition == Partition::ToClient));
        });
    }
}

#[test]
fn a_command_of_a_closed_connection_is_executed_after_a_short_partition() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        server.links().partition(Partition::Both);
        connection.send(&["SET", "k", "v"]).await.unwrap();
        drop(connection);
        tokio::time::sleep(ms(1_000)).await;
        assert!(server.keys().is_empty());
        server.links().unblock();
        assert_eq!((server.keys().len(), server.connections()), (1, 0));
    });
}

#[test]
fn a_partition_of_one_client_does_not_affect_others() {
    run(async |world, server, client| {
        let (other, second) = (world.start_client(), world.start_server());
        client.link_to(&server).partition(Partition::Both);
        assert_pending(ms(500), client.connect(&server)).await;
        assert!(other.connect(&server).await.is_ok());
        assert!(client.connect(&second).await.is_ok());
        client.links().unblock();
        assert!(client.connect(&server).await.is_ok());
    });
}

#[test]
fn reset_connections_lose_what_has_not_arrived() {
    run(async |world, server, client| {
        world.links().set_latency(ms(5), ms(0));
        let mut connection = client.connect(&server).await.unwrap();
        connection.send(&["SET", "k", "v"]).await.unwrap();
        server.links().reset();
        assert_eq!(text(connection.receive().await), Err(ConnectionReset));
        assert_eq!(send(&mut connection, "PING").await, Err(ConnectionReset));
        tokio::time::sleep(ms(100)).await;
        assert_eq!((server.keys().len(), server.connections()), (0, 0));
        assert!(client.connect(&server).await.is_ok());
    });
}

#[test]
fn a_name_moves_to_another_server_but_connections_do_not() {
    run(async |world, server, _| {
        let other = world.start_server();
        world.set_name("redis.example", &server);
        let options = || RedisOptions { connections: 1, ..world.options() };
        let open = || RedisStore::open("redis://redis.example", options()).unwrap();
        let first = open();
        first.ready().await.unwrap();
        world.set_name("redis.example", &other);
        let second = open();
        second.ready().await.unwrap();
        assert_eq!((server.connections(), other.connections()), (1, 1));
        let store = RedisStore::open("redis://unknown.example", options()).unwrap();
        let error = store.ready().await.unwrap_err().to_string();
        assert!(error.contains("unknown.example"), "{error}");
    });
}

#[test]
fn closed_connections_disappear() {
    run(async |_, server, client| {
        let connection = client.connect(&server).await.unwrap();
        assert_eq!(server.connections(), 1);
        drop(connection);
        assert_eq!(server.connections(), 0);
    });
}

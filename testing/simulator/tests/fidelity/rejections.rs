//! Rejections of commands: conditions of the server, and passwords.

use tollgate_simulator::{Refusal, Simulation};
use tollgate_testkit::{Connection, Server};

use super::{assert_no_differences, compare, is_comparable};

const COMMANDS: &[&str] = &[
    "PING",
    "TIME FOO",
    "SELECT 0",
    "GET k",
    "MGET k l",
    "SET k v",
    "DEL k",
    "PEXPIRE k 100000",
    "HSET h a b",
    "HDEL h a",
    "ZADD z 1 a",
    "ZREM z a",
    "SCRIPT EXISTS 0123456789012345678901234567890123456789",
    "RUN 'return 1' 0",
    "RUN 'return redis.call(\"SET\", KEYS[1], 1)' 1 k",
    "EVALSHA 0123456789012345678901234567890123456789 1 k",
    "SCRIPT FLUSH",
    "FCALL f 1 k",
    "FUNCTION LOAD '#!lua name=f\\nredis.register_function(\"f\", function() return 1 end)'",
    "FCALL f 1 k",
    "FUNCTION FLUSH",
];

/// Compares the replies of servers in a condition, which `settings` cause on the real one.
fn assert_equal_rejections(refusal: Refusal, settings: &[&[&str]]) {
    let server = Server::start();
    if !is_comparable(&server) {
        return;
    }
    for setting in settings {
        server.command(setting).expect_no_error("the setting");
    }
    Simulation::new(0).run(async |world| {
        let simulated = world.start_server();
        simulated.set_refusal(Some(refusal));
        let mut connection = world.start_client().connect(&simulated).await.unwrap();
        let mut real = server.connect();
        assert_no_differences(&compare(COMMANDS, &mut real, &mut connection).await);
    });
}

#[test]
fn full_memory() {
    assert_equal_rejections(Refusal::OutOfMemory, &[&["CONFIG", "SET", "maxmemory", "1"]]);
}

#[test]
fn read_only_replica() {
    assert_equal_rejections(Refusal::ReadOnly, &[&["REPLICAOF", "127.0.0.1", "1"]]);
}

#[test]
fn replica_without_its_primary() {
    let stale = ["CONFIG", "SET", "replica-serve-stale-data", "no"];
    let settings: [&[&str]; 2] = [&["REPLICAOF", "127.0.0.1", "1"], &stale];
    assert_equal_rejections(Refusal::PrimaryLost, &settings);
}

#[test]
fn too_few_replicas() {
    let setting = ["CONFIG", "SET", "min-replicas-to-write", "1"];
    assert_equal_rejections(Refusal::TooFewReplicas, &[&setting]);
}

#[test]
fn missing_and_wrong_passwords() {
    let server = Server::with(|config| config.password("secret"));
    if !is_comparable(&server) {
        return;
    }
    let long = format!("SET k {}", "x".repeat(16_385));
    let before = [
        "GET k",
        "FOO",
        "GET",
        "CLIENT GETNAME",
        "HELLO",
        "HELLO 2",
        "AUTH wrong",
        "AUTH default wrong",
        "AUTH other secret",
        "HELLO 2 AUTH default wrong",
        "GET k",
    ];
    let after = ["AUTH secret", "GET k", "AUTH wrong", "GET k", "AUTH default secret", &long];
    Simulation::new(0).run(async |world| {
        let simulated = world.start_server();
        simulated.set_login("default", "secret");
        let client = world.start_client();
        let mut connection = client.connect(&simulated).await.unwrap();
        let mut real = Connection::to(&server.address()).unwrap();
        let mut differences = compare(&before, &mut real, &mut connection).await;
        differences.extend(compare(&after, &mut real, &mut connection).await);
        for words in [long.as_str(), "MGET 1 2 3 4 5 6 7 8 9 10"] {
            let mut connection = client.connect(&simulated).await.unwrap();
            let mut real = Connection::to(&server.address()).unwrap();
            differences.extend(compare(&[words], &mut real, &mut connection).await);
            let words = ["PING"];
            assert!(real.command(&words).is_err() && connection.command(&words).await.is_err());
        }
        assert_no_differences(&differences);
    });
}

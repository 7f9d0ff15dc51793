//! Each fault does what its documentation states.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod network;
mod process;
mod replies;
#[path = "../support/mod.rs"]
mod support;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::Duration;

use support::ms;
use tollgate_simulator::{Client, Connection, Server, Simulation, World};
use tollgate_testkit::Reply;

/// Runs a test on one server and one client.
fn run(test: impl AsyncFnOnce(World, Server, Client)) {
    Simulation::new(1).run(async |world| {
        let (server, client) = (world.start_server(), world.start_client());
        test(world, server, client).await;
    });
}

#[test]
#[should_panic(expected = "the test ends within the time limit")]
fn a_test_that_waits_forever_fails() {
    run(async |_, server, client| {
        server.pause();
        let mut connection = client.connect(&server).await.unwrap();
        let _: Result<_, _> = connection.command(&["PING"]).await;
    });
}

/// Loads a script that increments a counter and returns it; returns the call.
async fn counter(connection: &mut Connection) -> [String; 4] {
    let text = "#!lua\nlocal n = (redis.call('GET', KEYS[1]) or 0) + 1\nredis.call('SET', KEYS[1], n)\nreturn n";
    let sha = connection.command(&["SCRIPT", "LOAD", text]).await.unwrap().text();
    ["EVALSHA".to_owned(), sha, "1".to_owned(), "count".to_owned()]
}

/// Sends a command and returns the reply as text, or the kind of the error.
async fn send(connection: &mut Connection, command: &str) -> Result<String, ErrorKind> {
    let words: Vec<&str> = command.split(' ').collect();
    text(connection.command(&words).await)
}

fn text(reply: io::Result<Reply>) -> Result<String, ErrorKind> {
    reply.map(|reply| reply.text()).map_err(|error| error.kind())
}

/// Asserts that nothing is ready within a time.
async fn assert_pending<T: std::fmt::Debug>(time: Duration, future: impl Future<Output = T>) {
    if let Ok(output) = tokio::time::timeout(time, future).await {
        panic!("ready: {output:?}");
    }
}

//! The simulated server replies exactly as a real one, where the real one is the version that it
//! simulates.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

mod cluster;
mod commands;
mod rejections;

use tollgate_simulator::{Connection, Simulation};
use tollgate_testkit::{Reply, Server};

/// Whether the real server has the version that is simulated.
fn is_comparable(server: &Server) -> bool {
    let info = server.command(&["INFO", "server"]).text();
    let is_comparable = info.contains("redis_version:7.0.") && !info.contains("valkey_version");
    if !is_comparable {
        eprintln!("skipped: the server is not Redis 7.0");
    }
    is_comparable
}

/// Splits a command into words. Quotes contain spaces, and `\n` is a line break. `RUN SCRIPT` loads a
/// script and calls it.
fn parse(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.replace("\\n", "\n"));
        } else {
            words.extend(part.split_whitespace().map(String::from));
        }
    }
    words
}

/// Sends a command to both; returns the replies of the real server and of the simulated one.
async fn send(
    line: &str,
    real: &mut tollgate_testkit::Connection,
    simulated: &mut Connection,
) -> (Reply, Reply) {
    let mut words = parse(line);
    if words[0] == "RUN" {
        let load = ["SCRIPT".to_owned(), "LOAD".to_owned(), format!("#!lua\n{}", words[1])];
        let loaded = (real.command(&load).unwrap(), simulated.command(&load).await.unwrap());
        if loaded.0.is_error() || loaded.0 != loaded.1 {
            return loaded;
        }
        words.splice(..2, ["EVALSHA".to_owned(), loaded.0.text()]);
    }
    (real.command(&words).unwrap(), simulated.command(&words).await.unwrap())
}

/// Compares the replies to commands, in order; returns the differences.
async fn compare(
    lines: &[&str],
    real: &mut tollgate_testkit::Connection,
    simulated: &mut Connection,
) -> Vec<String> {
    let mut differences = Vec::new();
    for line in lines {
        let (real, simulated) = send(line, real, simulated).await;
        differences.extend(difference(line, &format!("{real:?}"), &format!("{simulated:?}")));
    }
    differences
}

fn difference(line: &str, real: &str, simulated: &str) -> Option<String> {
    (real != simulated)
        .then(|| format!("{line}\n    real:      {real}\n    simulated: {simulated}"))
}

#[track_caller]
fn assert_no_differences(differences: &[String]) {
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Compares the replies of single servers.
fn assert_equal_replies(lines: &[&str]) {
    let server = Server::start();
    if !is_comparable(&server) {
        return;
    }
    Simulation::new(0).run(async |world| {
        let simulated = world.start_server();
        let mut connection = world.start_client().connect(&simulated).await.unwrap();
        let differences = compare(lines, &mut server.connect(), &mut connection).await;
        assert_no_differences(&differences);
    });
}

//! Eight processes check one key: together they are admitted exactly what the limits allow.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use support::{CHECK, check, execute, named, open};
use tollgate_algorithms::{Operation, Policy};
use tollgate_testkit::{Server, admitted_by_processes};

const PROCESSES: usize = 8;
const CHECKS: usize = 400;
/// The environment variables that make a process one of the eight: the server, and the limits.
const URL: &str = "TOLLGATE_TEST_URL";
const LIMITS: &str = "TOLLGATE_TEST_LIMITS";

/// Three limits, none of which recovers during the test.
const EXACT: &str = "500/d fixed from-first; 600/d log; 700/366d burst 700";

fn limits() -> Policy {
    named("shared", &std::env::var(LIMITS).unwrap_or_else(|_| EXACT.to_owned()))
}

/// Not a test by itself: the body of each of the eight processes.
#[test]
fn one_of_eight() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let admitted = runtime.block_on(async {
        let store = open(&url);
        let limit = limits();
        let mut admitted = 0;
        for cost in [1, 3].into_iter().cycle().take(CHECKS) {
            let decision = execute(&store, CHECK, &limit, b"k", cost).await.unwrap();
            admitted += if decision.allowed { u64::from(cost) } else { 0 };
        }
        admitted
    });
    println!("\nadmitted {admitted}");
}

/// Runs the eight processes with the limits of each; returns the sum of the admitted costs.
fn run_eight(server: &Server, limits_of: impl Fn(usize) -> String) -> u64 {
    let (url, limits) = (server.url(), (0..PROCESSES).map(limits_of).collect::<Vec<_>>());
    let environments: Vec<_> =
        limits.iter().map(|limits| vec![(URL, &*url), (LIMITS, &**limits)]).collect();
    admitted_by_processes("one_of_eight", &environments)
}

#[tokio::test]
async fn eight_processes_are_admitted_exactly_what_the_limits_allow() {
    let server = Server::start();
    assert_eq!(run_eight(&server, |_| EXACT.to_owned()), 500);
    // Denials charge nothing: the use of every limit is what was admitted.
    let store = open(&server.url());
    let peek = execute(&store, Operation::Peek, &limits(), b"k", 1).await.unwrap();
    let remaining: Vec<u64> = peek.limits().iter().map(|limit| limit.remaining).collect();
    assert_eq!(remaining, [200, 0, 100]);
    assert!(!check(&store, &limits(), b"k").await.unwrap().allowed);
}

/// The situation during a roll-out: four processes have the old limits and four the new ones.
#[test]
fn two_versions_of_a_policy_admit_at_most_the_larger() {
    let server = Server::start();
    for (old, new, larger) in [
        ("300/366d burst 300", "500/366d burst 500", 500),
        ("300/d fixed from-first", "500/d fixed from-first", 500),
        ("300/366d sliding", "500/366d sliding", 500),
        ("300/d log", "500/d log", 500),
    ] {
        server.command(&["FLUSHALL"]);
        let limits_of = |index| if index % 2 == 0 { old } else { new }.to_owned();
        let admitted = run_eight(&server, limits_of);
        assert!(admitted <= larger, "{old} and {new}: {admitted}");
        assert!(admitted > larger * 9 / 10, "{old} and {new}: {admitted}");
    }
}

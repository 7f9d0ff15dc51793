//! Bytes a key: how much a process grows by a million keys of 24 bytes, in a table of each
//! limiter. Each is measured in a process of its own, from `/proc/self/statm`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::num::NonZeroU32;
use std::process::Command;

use tollgate::{Key, MemoryLimiter, Policy};

const KEYS: usize = 1_000_000;
const PEERS: [&str; 5] =
    ["tollgate", "tollgate, three limits", "tollgate, log", "governor", "rate-net"];

fn main() {
    // `cargo test --all-targets` runs it too, only to see that it builds.
    if !std::env::args().any(|arg| arg == "--bench") && std::env::var("BENCH_PEER").is_err() {
        return;
    }
    if let Ok(peer) = std::env::var("BENCH_PEER") {
        println!("{peer}: {} bytes a key", measure(&peer));
        return;
    }
    for peer in PEERS {
        let this = std::env::current_exe();
        let child = this.map(|this| Command::new(this).env("BENCH_PEER", peer).status());
        if !matches!(child, Ok(Ok(it)) if it.success()) {
            println!("{peer}: could not be measured");
        }
    }
}

/// The memory growth of this process per key.
fn measure(peer: &str) -> usize {
    // Keys are generated one at a time, so that they do not count.
    let keys = (0..KEYS).map(|n| format!("user:{n:019}"));
    let limit = NonZeroU32::new(1_000).unwrap_or(NonZeroU32::MIN);
    let before = resident_bytes();
    let limits = match peer {
        "tollgate" => "1000/h",
        "tollgate, log" => "1000/h log",
        _ => "1000/h fixed; 10000/d fixed; 1000/min",
    };
    let after = match peer {
        "governor" => {
            let table = governor::RateLimiter::keyed(governor::Quota::per_hour(limit));
            keys.for_each(|key| assert!(table.check_key(&key).is_ok()));
            resident_bytes()
        }
        "rate-net" => {
            let table = rate_net::RateLimiter::per_minute(1_000);
            keys.for_each(|key| assert!(table.check(&key).is_allow()));
            resident_bytes()
        }
        _ => {
            let limiter = MemoryLimiter::builder().max_keys(2 * KEYS).build();
            let policy: Result<Policy, _> = limits.parse();
            for key in keys {
                let admitted = policy.as_ref().is_ok_and(|policy| {
                    Key::new(&key).is_ok_and(|key| limiter.check(policy, key).allowed())
                });
                assert!(admitted);
            }
            let resident = resident_bytes();
            println!("  {:?}", limiter.stats());
            resident
        }
    };
    (after - before) / KEYS
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    pages.map_or(0, |n: usize| n * 4_096)
}

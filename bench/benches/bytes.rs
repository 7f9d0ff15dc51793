//! Bytes per key: the memory growth of a process by a million keys of 24 bytes, for each limiter.
//! Each is measured in a process of its own, from `/proc/self/statm`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::num::NonZeroU32;
use std::process::Command;

use tollgate::{Key, MemoryLimiter, Policy};

const KEYS: usize = 1_000_000;
const LIMITERS: [&str; 5] =
    ["tollgate", "tollgate, three limits", "tollgate, log", "governor", "rate-net"];
/// Set in a process that measures one limiter: its name.
const VARIABLE: &str = "BENCH_LIMITER";

fn main() {
    if let Ok(limiter) = std::env::var(VARIABLE) {
        println!("{limiter}: {} bytes per key", measure(&limiter));
        return;
    }
    // `cargo test --all-targets` starts this program without `--bench`.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    for limiter in LIMITERS {
        let this = std::env::current_exe();
        let child = this.map(|this| Command::new(this).env(VARIABLE, limiter).status());
        if !matches!(child, Ok(Ok(status)) if status.success()) {
            println!("{limiter}: could not be measured");
        }
    }
}

/// The memory growth of this process per key.
#[expect(clippy::expect_used, reason = "limits and keys are valid")]
fn measure(limiter: &str) -> usize {
    // Keys are generated one at a time, so that they do not count.
    let keys = (0..KEYS).map(|n| format!("user:{n:019}"));
    let before = resident_bytes();
    let after = match limiter {
        "governor" => {
            let limit = NonZeroU32::new(1_000).expect("a count above 0");
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
            let limits = match limiter {
                "tollgate" => "1000/h",
                "tollgate, log" => "1000/h log",
                _ => "1000/h fixed; 10000/d fixed; 1000/min",
            };
            let table = MemoryLimiter::builder().max_keys(2 * KEYS).max_bytes(usize::MAX).build();
            let policy: Policy = limits.parse().expect("valid limits");
            for key in keys {
                let key = Key::new(&key).expect("a valid key");
                assert!(table.check(&policy, key).allowed);
            }
            let resident = resident_bytes();
            println!("  {:?}, {} bytes", table.stats(), table.bytes());
            resident
        }
    };
    (after - before) / KEYS
}

#[expect(clippy::expect_used, reason = "Linux has this file")]
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm is readable");
    let pages = statm.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    pages.map(|pages: usize| pages * 4_096).expect("the number of resident pages")
}

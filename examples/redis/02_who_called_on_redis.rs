//! Pattern 2 on Redis or Valkey: 10 a second per IP, and when an IP is refused, which of its users
//! did it.
//!
//! The well-known version keeps a list of the callers for each IP, which grows with the traffic. Here
//! every request is also counted for its user at that IP, by a policy that never denies (`shadow`),
//! in the same step; so a refused IP can be asked who used how much. The last calls themselves, with
//! a note on each, come with `track` in a later version.
//!
//! Real code leaves `.clock(…)` out, and gets the server's time; and leaves `.deadline(…)` out, and
//! has every answer within 15 ms. The first argument is the server's URL.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{
    Check, Cost, Key, KeyBuf, Limiter, ManualClock, OpenError, Operation, Policy, Request,
    Timestamp, random_id,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A namespace of this run's own, so that it finds nothing of an earlier one.
    let namespace = format!("example-02-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let limiter = open(&namespace, &clock).await?;
    let per_ip: Policy = "10/s fixed from-first".parse()?;
    let per_user = Policy::new("user-at-ip", ["1000/s fixed from-first".parse()?])?.shadow();
    let ip = "203.0.113.7";

    println!("{per_ip}\n\nuser  sent  passed");
    for (user, sent, expected) in [("ann", 2, 2), ("eve", 15, 8), ("bob", 3, 0), ("ann", 1, 0)] {
        let at_ip = KeyBuf::join([ip, user])?;
        let checks = [
            Check { policy: &per_ip, key: ip.as_bytes(), cost: Cost::ONE },
            Check { policy: &per_user, key: at_ip.key().as_bytes(), cost: Cost::ONE },
        ];
        let verb = Operation::Check { lease: None };
        let request = Request { operation: verb, checks: &checks, request_id: None };
        let mut passed = 0;
        for _ in 0..sent {
            passed += usize::from(limiter.decide(&request).await?.allowed());
        }
        println!("{user:<4}  {sent:>4}  {passed:>6}");
        assert_eq!(passed, expected);
    }

    assert!(!limiter.peek(&per_ip, Key::new(ip)?, Cost::ONE).await?.allowed());
    println!("\n{ip} is refused; who called:");
    let mut calls = Vec::new();
    for user in ["ann", "bob", "eve"] {
        let held = limiter.inspect(&per_user, KeyBuf::join([ip, user])?.key()).await?;
        println!("{user:<4}  {:>4}", held.limits[0].used);
        calls.push(held.limits[0].used);
    }
    assert_eq!(calls, [3, 3, 15]);
    Ok(())
}

/// A limiter as another process would open it: the same server, the same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

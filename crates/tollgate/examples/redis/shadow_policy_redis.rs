//! Shadow policy on Redis or Valkey: ten requests per second and IP address, with a count for each
//! user of an address.
//!
//! Each request is also counted for its user by a policy that never denies (`shadow`), in the same
//! step. When an address is denied, the counts show which users caused it.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{
    Check, Cost, Key, KeyBuf, Limiter, ManualClock, Operation, Policy, Request, Timestamp,
    random_id,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A new namespace for each run, so that runs are independent.
    let namespace = format!("example-shadow-policy-{}", random_id());
    let clock = ManualClock::at(Timestamp::from_micros(1_763_640_000_000_000));
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let limiter = builder.clock(clock).open(&url).await?;
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
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: &checks, request_id: None };
        let mut passed = 0;
        for _ in 0..sent {
            passed += usize::from(limiter.decide(&request).await?.allowed());
        }
        println!("{user:<4}  {sent:>4}  {passed:>6}");
        assert_eq!(passed, expected);
    }

    assert!(!limiter.peek(&per_ip, Key::new(ip)?, Cost::ONE).await.allowed);
    println!("\n{ip} is denied; requests per user:");
    let mut calls = Vec::new();
    for user in ["ann", "bob", "eve"] {
        let inspection = limiter.inspect(&per_user, KeyBuf::join([ip, user])?.key()).await?;
        println!("{user:<4}  {:>4}", inspection.limits[0].used);
        calls.push(inspection.limits[0].used);
    }
    assert_eq!(calls, [3, 3, 15]);
    Ok(())
}

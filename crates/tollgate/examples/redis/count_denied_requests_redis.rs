//! Several limits for several keys of one request on Redis or Valkey, counting denied requests too, in
//! one atomic script.
//!
//! The script declares all keys, as a cluster requires, and every `count-denied` limit counts every
//! request. The output shows the same counts for both orders of the limits.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{
    Check, Cost, Limiter, ManualClock, OpenError, Operation, Policy, Request, Timestamp, random_id,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A new namespace for each run, so that runs are independent.
    let namespace = format!("example-count-denied-requests-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let orders = [
        "10/s fixed count-denied; 120/min fixed count-denied; 240/h fixed count-denied",
        "240/h fixed count-denied; 10/s fixed count-denied; 120/min fixed count-denied",
    ];
    println!("ann sends 4 requests, then bob 8, all from one address");
    let mut counted = Vec::new();
    for (number, order) in orders.iter().enumerate() {
        println!("\nlimits in the order {order}");
        let limiter = open(&format!("{namespace}-{number}"), &clock).await?;
        counted.push(twelve_requests(&limiter, &order.parse()?).await?);
    }
    assert_eq!(counted[0], counted[1], "the order of writing changes nothing");
    assert_eq!(counted[0], [2, 112, 232, 0, 108, 228]);
    Ok(())
}

/// Sends four requests of ann and eight of bob, all from one address. Returns the quota left for bob
/// and for the address, limit by limit.
async fn twelve_requests(limiter: &Limiter, policy: &Policy) -> Result<Vec<u64>, Box<dyn Error>> {
    println!("request  user           left for the user  left for the address");
    let mut left = Vec::new();
    for number in 1..=12 {
        let user = if number <= 4 { "ann" } else { "bob" };
        let check = |key| Check { policy, key, cost: Cost::ONE };
        let checks = [check(user.as_bytes()), check(b"203.0.113.7")];
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: &checks, request_id: None };
        let answer = limiter.decide(&request).await?;
        left.clear();
        for decision in &answer.decisions {
            left.extend(decision.limits().iter().map(|limit| limit.remaining));
        }
        let status = if answer.allowed() { "allowed" } else { "denied" };
        let [of_user, of_address] = [&left[..3], &left[3..]].map(|left| format!("{left:?}"));
        println!("{number:>7}  {user:<4}  {status:<7}  {of_user:<17}  {of_address}");
        assert_eq!(answer.allowed(), number <= 10);
    }
    Ok(left)
}

/// Opens a limiter like another process would: same server, same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

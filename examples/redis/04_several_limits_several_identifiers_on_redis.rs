//! Pattern 4 on Redis or Valkey: several limits for each of several identifiers of a request, in one
//! atomic step, counting all requests.
//!
//! The well-known script makes its keys' names inside, which a cluster cannot route, and stops at the
//! first limit that refuses, so that the order of writing changes what is counted. Here all keys are
//! declared, and every `count-denied` limit of every identifier counts every request. See in the
//! output that both orders count the same.
//!
//! Real code leaves `.clock(…)` out, and gets the server's time; and leaves `.deadline(…)` out, and
//! has every answer within 15 ms. The first argument is the server's URL.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{
    Check, Cost, Limiter, ManualClock, OpenError, Operation, Policy, Request, Timestamp, random_id,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A namespace of this run's own, so that it finds nothing of an earlier one.
    let namespace = format!("example-04-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let orders = [
        "10/s fixed count-denied; 120/min fixed count-denied; 240/h fixed count-denied",
        "240/h fixed count-denied; 10/s fixed count-denied; 120/min fixed count-denied",
    ];
    println!("ann sends 4 requests, then bob 8, all from one address");
    let mut counted = Vec::new();
    for (number, order) in orders.iter().enumerate() {
        println!("\nwritten as {order}");
        let limiter = open(&format!("{namespace}-{number}"), &clock).await?;
        counted.push(twelve_requests(&limiter, &order.parse()?).await?);
    }
    assert_eq!(counted[0], counted[1], "the order of writing changes nothing");
    assert_eq!(counted[0], [2, 112, 232, 0, 108, 228]);
    Ok(())
}

/// Sends four requests of ann and eight of bob, all from one address: what is left to bob and to
/// the address after the last, limit by limit.
async fn twelve_requests(limiter: &Limiter, policy: &Policy) -> Result<Vec<u64>, Box<dyn Error>> {
    println!("request  user           left to the user  left to the address");
    let mut left = Vec::new();
    for number in 1..=12 {
        let user = if number <= 4 { "ann" } else { "bob" };
        let check = |key| Check { policy, key, cost: Cost::ONE };
        let checks = [check(user.as_bytes()), check(b"203.0.113.7")];
        let verb = Operation::Check { lease: None };
        let request = Request { operation: verb, checks: &checks, request_id: None };
        let answer = limiter.decide(&request).await?;
        left.clear();
        for decision in &answer.decisions {
            left.extend(decision.limits().iter().map(|limit| limit.remaining));
        }
        let said = if answer.allowed() { "allowed" } else { "denied" };
        let [of_user, of_address] = [&left[..3], &left[3..]].map(|x| format!("{x:?}"));
        println!("{number:>7}  {user:<4}  {said:<7}  {of_user:<16}  {of_address}");
        assert_eq!(answer.allowed(), number <= 10);
    }
    Ok(left)
}

/// A limiter as another process would open it: the same server, the same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

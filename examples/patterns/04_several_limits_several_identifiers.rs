//! Pattern 4: several limits for each of several identifiers of a request, in one atomic step,
//! counting all requests: 10 a second, 120 a minute and 240 an hour for the user and for the
//! address.
//!
//! The well-known version stops at the first limit that refuses, so the order in which the limits
//! are written changes what is counted. Here every `count-denied` limit of every identifier counts
//! every request. See in the output that both orders count the same, and that a user who is refused
//! for another's hits loses his own (pattern 5 is for those who do not want that).
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Check, Cost, ManualClock, MemoryLimiter, Operation, Policy, Request};

fn main() -> Result<(), Box<dyn Error>> {
    let orders = [
        "10/s fixed count-denied; 120/min fixed count-denied; 240/h fixed count-denied",
        "240/h fixed count-denied; 10/s fixed count-denied; 120/min fixed count-denied",
    ];
    println!("ann sends 4 requests, then bob 8, all from one address");
    let mut counted = Vec::new();
    for order in orders {
        println!("\nwritten as {order}");
        counted.push(twelve_requests(&order.parse()?)?);
    }
    assert_eq!(counted[0], counted[1], "the order of writing changes nothing");
    assert_eq!(counted[0], [2, 112, 232, 0, 108, 228]);
    Ok(())
}

/// Sends four requests of ann and eight of bob, all from one address: what is left to bob and to
/// the address after the last, limit by limit.
fn twelve_requests(policy: &Policy) -> Result<Vec<u64>, Box<dyn Error>> {
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    println!("request  user           left to the user  left to the address");
    let mut left = Vec::new();
    for number in 1..=12 {
        let user = if number <= 4 { "ann" } else { "bob" };
        let check = |key| Check { policy, key, cost: Cost::ONE };
        let checks = [check(user.as_bytes()), check(b"203.0.113.7")];
        let verb = Operation::Check { lease: None };
        let answer =
            limiter.decide(&Request { operation: verb, checks: &checks, request_id: None })?;
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

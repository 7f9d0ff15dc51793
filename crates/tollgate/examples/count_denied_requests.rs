//! Several limits for several keys of one request, counting denied requests too (`count-denied`): 10
//! per second, 120 per minute and 240 per hour, for the user and for the address.
//!
//! An implementation that stops at the first exceeded limit counts differently when the limits are
//! reordered. Here every `count-denied` limit of every key counts every request. The output shows the
//! same counts for both orders. It also shows that users lose quota when another user exhausts the
//! address; `count_allowed_requests` avoids that.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

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
        println!("\nlimits in the order {order}");
        counted.push(twelve_requests(&order.parse()?)?);
    }
    assert_eq!(counted[0], counted[1], "the order of writing changes nothing");
    assert_eq!(counted[0], [2, 112, 232, 0, 108, 228]);
    Ok(())
}

/// Sends four requests of ann and eight of bob, all from one address. Returns the quota left for bob
/// and for the address, limit by limit.
fn twelve_requests(policy: &Policy) -> Result<Vec<u64>, Box<dyn Error>> {
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    println!("request  user           left for the user  left for the address");
    let mut left = Vec::new();
    for number in 1..=12 {
        let user = if number <= 4 { "ann" } else { "bob" };
        let check = |key| Check { policy, key, cost: Cost::ONE };
        let checks = [check(user.as_bytes()), check(b"203.0.113.7")];
        let operation = Operation::Check { lease: None };
        let answer = limiter.decide(&Request { operation, checks: &checks, request_id: None })?;
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

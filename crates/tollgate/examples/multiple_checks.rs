//! Several checks in one atomic decision: the user, the address and the service, each with a policy
//! and a key. All are charged, or none.
//!
//! Separate checks would charge the user for a request that the limit of the address denies. The
//! output shows that a denied request changes no counter, and which check denied it.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Check, Cost, ManualClock, MemoryLimiter, Operation, Policies, Request};

fn main() -> Result<(), Box<dyn Error>> {
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    let mut policies = Policies::new();
    policies.define("per-user", "3/min log")?;
    policies.define("per-ip", "4/min log")?;
    policies.define("global", "100/s; 1000/min sliding")?;

    println!("user address      left: user  ip  all");
    let requests = [
        ("ann", "203.0.113.7", true, [2, 3, 99]),
        ("ann", "203.0.113.7", true, [1, 2, 98]),
        ("ann", "203.0.113.7", true, [0, 1, 97]),
        ("ann", "203.0.113.7", false, [0, 1, 97]),
        ("bob", "203.0.113.7", true, [2, 0, 96]),
        ("bob", "203.0.113.7", false, [2, 0, 96]),
        ("bob", "203.0.113.8", true, [1, 3, 95]),
    ];
    for (user, ip, allowed, left) in requests {
        let checks = [
            Check { policy: policies.get("per-user")?, key: user.as_bytes(), cost: Cost::ONE },
            Check { policy: policies.get("per-ip")?, key: ip.as_bytes(), cost: Cost::ONE },
            Check { policy: policies.get("global")?, key: b"all", cost: Cost::ONE },
        ];
        let operation = Operation::Check { lease: None };
        let answer = limiter.decide(&Request { operation, checks: &checks, request_id: None })?;
        let remaining: Vec<_> =
            answer.decisions.iter().map(|decision| decision.remaining).collect();
        let status = match answer.decisions.iter().position(|decision| !decision.allowed) {
            Some(index) => format!("denied by {}", checks[index].policy.name()),
            None => "allowed".into(),
        };
        let [of_user, of_ip, of_all] = left;
        println!("{user}  {ip}  {of_user:>9}  {of_ip:>2}  {of_all:>3}  {status}");
        assert_eq!((answer.allowed(), &remaining[..]), (allowed, &left[..]));
    }
    Ok(())
}

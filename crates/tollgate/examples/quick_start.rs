//! The shortest program: two requests per hour and user, in this process, with the system clock.
//!
//! A denial is a decision, not an error; its outcome states when the request would pass. A limiter
//! is cheap to clone and can be shared; a check takes `&self`, never waits and cannot fail.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use tollgate::{MemoryLimiter, Outcome, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = MemoryLimiter::new();
    let policy = Policy::named("api", "2/h")?;
    for number in 1..=3 {
        let decision = limiter.check(&policy, "user:42");
        let status = match decision.outcome() {
            Outcome::Allowed { .. } => "allowed",
            Outcome::Denied(_) => "denied",
        };
        println!("{number}: {status}, {} left", decision.remaining);
        assert_eq!(decision.allowed, number <= 2);
    }
    Ok(())
}

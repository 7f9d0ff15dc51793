//! A limiter in five lines: two an hour for each user, in this process, by the machine's clock.
//!
//! A denial is an answer, not an error: it says what is left and, in `retry_after`, when to come
//! back. See in the output that the third is denied. A limiter can be cloned and shared; a check
//! takes `&self`, never waits and cannot fail.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use tollgate::{Key, MemoryLimiter, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = MemoryLimiter::new();
    let policy: Policy = "2/h".parse()?;
    for number in 1..=3 {
        let decision = limiter.check(&policy, Key::new("user:42")?);
        let said = if decision.allowed() { "allowed" } else { "denied" };
        println!("{number}: {said}, {} left", decision.remaining);
        assert_eq!(decision.allowed(), decision.retry_after().is_none());
        assert_eq!(decision.allowed(), number <= 2);
    }
    Ok(())
}

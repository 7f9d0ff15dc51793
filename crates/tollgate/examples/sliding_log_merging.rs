//! Sliding log with simultaneous requests and a full log.
//!
//! In a sorted set of timestamps, two requests of the same millisecond are one member; and if a
//! request is added before the count, denied requests keep the set full. The output shows that seven
//! requests of the same microsecond count as seven, and that denied requests do not extend the wait.
//!
//! Entries of the same microsecond merge into one with their total cost. A key stores at most 10,000
//! entries (`Policy::with_log_entries`); beyond that, the two oldest merge at the later time, which is
//! never more permissive.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "5/min log".parse()?;
    let (burst, frequent) = (Key::new("user:42")?, Key::new("user:43")?);

    println!("{policy}\n\nseven requests in the same microsecond");
    let passed = (0..7).filter(|_| limiter.check(&policy, burst).allowed).count();
    println!("  {passed} passed");
    assert_eq!(passed, 5);

    println!("\nfive requests, then one every ten seconds");
    println!("{:>4}  {:<7}  {:>8}", "at", "", "retry in");
    let first = (0..5).filter(|_| limiter.check(&policy, frequent).allowed).count();
    assert_eq!(first, 5);
    for second in (10..=70).step_by(10) {
        clock.set(Timestamp::EPOCH.saturating_add(Micros::from_secs(second)));
        let decision = limiter.check(&policy, frequent);
        let status = if decision.allowed { "allowed" } else { "denied" };
        let retry_after =
            decision.retry_after.map_or("-".into(), |retry_after| retry_after.to_string());
        println!("{second:>4}  {status:<7}  {retry_after:>8}");
        let left = (second < 60).then(|| Micros::from_secs(60 - second));
        assert_eq!(decision.retry_after, left, "the wait only shrinks");
    }

    // A log of four entries records five requests; the two oldest merge, and the sixth is denied.
    let short = policy.with_log_entries(4);
    let key = Key::new("user:44")?;
    for _ in 0..5 {
        clock.advance(Micros::from_secs(1));
        assert!(limiter.check(&short, key).allowed);
    }
    assert!(!limiter.check(&short, key).allowed);
    println!("\nfive requests in a log of four entries: {} merged", limiter.stats().merged);
    assert_eq!(limiter.stats().merged, 1);
    Ok(())
}

//! Pattern 9: the same rolling minute, kept as a sorted set of times: forget what is older than a
//! minute, count, add if there are under five.
//!
//! Two faults of the well-known version: two requests in the same millisecond are one member of the
//! set, so both pass on one place; and where the request is added before it is counted, refused
//! ones keep the set full. See in the output that seven at the same microsecond are seven, and that
//! knocking does not prolong the wait.
//!
//! What the store does with it: a log is a list of times with running sums. Entries of one
//! microsecond merge into one that carries their sum, so none is lost; at most 10,000 are kept a
//! key (`Policy::with_log_entries`), beyond which the two oldest merge at the newer time: never
//! looser. Old ones leave when the key is next charged, since nothing needs them gone before.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "5/min log".parse()?;
    let (burst, knocking) = (Key::new("user:42")?, Key::new("user:43")?);

    println!("{policy}\n\nseven at the same microsecond");
    let passed = (0..7).filter(|_| limiter.check(&policy, burst).allowed()).count();
    println!("  {passed} passed");
    assert_eq!(passed, 5);

    println!("\nfive, then one every ten seconds");
    println!("{:>4}  {:<7}  {:>8}", "at", "", "again in");
    let first = (0..5).filter(|_| limiter.check(&policy, knocking).allowed()).count();
    assert_eq!(first, 5);
    for second in (10..=70).step_by(10) {
        clock.set(Timestamp::EPOCH.saturating_add(Micros::from_secs(second)));
        let decision = limiter.check(&policy, knocking);
        let said = if decision.allowed() { "allowed" } else { "denied" };
        let again =
            decision.retry_after().map_or("-".into(), |retry_after| retry_after.to_string());
        println!("{second:>4}  {said:<7}  {again:>8}");
        let left = (second < 60).then(|| Micros::from_secs(60 - second));
        assert_eq!(decision.retry_after(), left, "the wait only shrinks");
    }

    // A log of four entries: five charges at five moments, merged without letting a sixth in.
    let short = policy.with_log_entries(4);
    let key = Key::new("user:44")?;
    for _ in 0..5 {
        clock.advance(Micros::from_secs(1));
        assert!(limiter.check(&short, key).allowed());
    }
    assert!(!limiter.check(&short, key).allowed());
    println!("\nfive in a log of four entries: {} merged, none lost", limiter.stats().merged);
    assert_eq!(limiter.stats().merged, 1);
    Ok(())
}

//! Pattern 9 on Redis or Valkey: a rolling minute, which is usually kept as a sorted set of times.
//!
//! Two faults of the well-known version: two requests in the same millisecond are one member of the
//! set, so both pass on one place; and where the request is added before it is counted, refused ones
//! keep the set full. See in the output that seven at the same microsecond, from two processes, are
//! seven, and that knocking does not prolong the wait.
//!
//! What the store does with it: a short log is packed into the one string that holds all of a key's
//! state, a long one gets a row of its own; entries of one microsecond are one entry with their sum.
//!
//! Real code leaves `.clock(…)` out, and gets the server's time; and leaves `.deadline(…)` out, and
//! has every answer within 15 ms. The first argument is the server's URL.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{Key, Limiter, ManualClock, Micros, OpenError, Policy, Timestamp, random_id};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A namespace of this run's own, so that it finds nothing of an earlier one.
    let namespace = format!("example-09-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let processes = [open(&namespace, &clock).await?, open(&namespace, &clock).await?];
    let policy: Policy = "5/min log".parse()?;
    let (burst, knocking) = (Key::new("user:42")?, Key::new("user:43")?);

    println!("{policy}\n\nseven at the same microsecond, from two processes");
    let mut passed = 0;
    for process in processes.iter().cycle().take(7) {
        passed += usize::from(process.check(&policy, burst).await?.allowed());
    }
    println!("  {passed} passed");
    assert_eq!(passed, 5);

    println!("\nfive, then one every ten seconds");
    println!("{:>4}  {:<7}  {:>8}", "at", "", "again in");
    for process in processes.iter().cycle().take(5) {
        assert!(process.check(&policy, knocking).await?.allowed());
    }
    for second in (10..=70).step_by(10) {
        clock.set(start.saturating_add(Micros::from_secs(second)));
        let decision = processes[0].check(&policy, knocking).await?;
        let said = if decision.allowed() { "allowed" } else { "denied" };
        let again =
            decision.retry_after().map_or("-".into(), |retry_after| retry_after.to_string());
        println!("{second:>4}  {said:<7}  {again:>8}");
        let left = (second < 60).then(|| Micros::from_secs(60 - second));
        assert_eq!(decision.retry_after(), left, "the wait only shrinks");
    }
    Ok(())
}

/// A limiter as another process would open it: the same server, the same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

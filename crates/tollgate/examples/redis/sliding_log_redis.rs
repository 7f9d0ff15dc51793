//! Sliding log on Redis or Valkey: at most five requests in any minute, shared by processes.
//!
//! In a sorted set of timestamps, two requests of the same millisecond are one member; and if a
//! request is added before the count, denied requests keep the set full. The output shows that seven
//! requests of the same microsecond from two processes count as seven, and that denied requests do not
//! extend the wait.
//!
//! A log of up to 100 entries is part of the string that is the key's value; with a longer log, the key is a hash.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{Key, Limiter, ManualClock, Micros, OpenError, Policy, Timestamp, random_id};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A new namespace for each run, so that runs are independent.
    let namespace = format!("example-sliding-log-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let processes = [open(&namespace, &clock).await?, open(&namespace, &clock).await?];
    let policy: Policy = "5/min log".parse()?;
    let (burst, frequent) = (Key::new("user:42")?, Key::new("user:43")?);

    println!("{policy}\n\nseven requests in the same microsecond, from two processes");
    let mut passed = 0;
    for process in processes.iter().cycle().take(7) {
        passed += usize::from(process.check(&policy, burst).await.allowed);
    }
    println!("  {passed} passed");
    assert_eq!(passed, 5);

    println!("\nfive requests, then one every ten seconds");
    println!("{:>4}  {:<7}  {:>8}", "at", "", "retry in");
    for process in processes.iter().cycle().take(5) {
        assert!(process.check(&policy, frequent).await.allowed);
    }
    for second in (10..=70).step_by(10) {
        clock.set(start.saturating_add(Micros::from_secs(second)));
        let decision = processes[0].check(&policy, frequent).await;
        let status = if decision.allowed { "allowed" } else { "denied" };
        let retry_after =
            decision.retry_after.map_or("-".into(), |retry_after| retry_after.to_string());
        println!("{second:>4}  {status:<7}  {retry_after:>8}");
        let left = (second < 60).then(|| Micros::from_secs(60 - second));
        assert_eq!(decision.retry_after, left, "the wait only shrinks");
    }
    Ok(())
}

/// Opens a limiter like another process would: same server, same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

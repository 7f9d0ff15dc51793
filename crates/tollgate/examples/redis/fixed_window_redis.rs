//! Fixed window on Redis or Valkey: ten requests per second and IP address, shared by processes.
//!
//! A counter built from GET, INCR and EXPIRE lets concurrent requests exceed the limit, and a client
//! that crashes before EXPIRE leaves a counter that never ends. Here one script call checks, counts
//! and sets the expiry. The output shows that 10 of 100 concurrent checks of four processes pass.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::{Key, Limiter, ManualClock, Micros, OpenError, Policy, Timestamp, random_id};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // A new namespace for each run, so that runs are independent.
    let namespace = format!("example-fixed-window-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let per_ip: Policy = "10/s fixed from-first count-denied".parse()?;
    let limiter = open(&namespace, &clock).await?;
    let ip = Key::new("203.0.113.7")?;

    println!("{per_ip}\n");
    println!("{:>9}  {:>4}  {:>6}  {:>8}", "at", "hits", "passed", "retry in");
    for (later_us, hits, expected) in
        [(700_000, 10, 10), (300_000, 2, 0), (699_999, 1, 0), (1, 1, 1)]
    {
        clock.advance(Micros::new(later_us));
        let (mut passed, mut retry_after) = (0, None);
        for _ in 0..hits {
            let decision = limiter.check(&per_ip, ip).await;
            passed += usize::from(decision.allowed);
            retry_after = decision.retry_after;
        }
        let retry_after = retry_after.map_or("-".into(), |retry_after| retry_after.to_string());
        println!(
            "{:>9}  {hits:>4}  {passed:>6}  {retry_after:>8}",
            clock.now().duration_since(start).to_string()
        );
        assert_eq!(passed, expected);
    }

    let mut racing = JoinSet::new();
    for _ in 0..4 {
        let limiter = open(&namespace, &clock).await?;
        for _ in 0..25 {
            let (limiter, per_ip) = (limiter.clone(), per_ip.clone());
            racing.spawn(async move {
                let decision = limiter.check(&per_ip, Key::new("203.0.113.8")?).await;
                Ok::<_, Box<dyn Error + Send + Sync>>(decision.allowed)
            });
        }
    }
    let mut passed = 0;
    for hit in racing.join_all().await {
        passed += usize::from(hit?);
    }
    println!("\n100 concurrent checks of four processes: {passed} passed");
    assert_eq!(passed, 10);
    Ok(())
}

/// Opens a limiter like another process would: same server, same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

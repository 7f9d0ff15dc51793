//! Pattern 1 on Redis or Valkey: a single counter per IP, 10 a second, that any number of processes
//! share.
//!
//! The well-known version sends GET, and then INCR and EXPIRE: callers who race overshoot, and one
//! who dies before EXPIRE leaves a counter that never ends. Here one script call decides, charges
//! and sets the end. See in the output that exactly 10 of 100 racing checks of four processes pass,
//! whichever process asks.
//!
//! Real code leaves `.clock(…)` out, and gets the server's time; and leaves `.deadline(…)` out, and
//! has every answer within 15 ms. The first argument is the server's URL.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::{Key, Limiter, ManualClock, Micros, OpenError, Policy, Timestamp, random_id};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // A namespace of this run's own, so that it finds nothing of an earlier one.
    let namespace = format!("example-01-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let per_ip: Policy = "10/s fixed from-first count-denied".parse()?;
    let limiter = open(&namespace, &clock).await?;
    let ip = Key::new("203.0.113.7")?;

    println!("{per_ip}\n");
    println!("{:>9}  {:>4}  {:>6}  {:>8}", "at", "hits", "passed", "again in");
    for (later_us, hits, expected) in
        [(700_000, 10, 10), (300_000, 2, 0), (699_999, 1, 0), (1, 1, 1)]
    {
        clock.advance(Micros::new(later_us));
        let (mut passed, mut again) = (0, None);
        for _ in 0..hits {
            let decision = limiter.check(&per_ip, ip).await?;
            passed += usize::from(decision.allowed());
            again = decision.retry_after();
        }
        let again = again.map_or("-".into(), |again| again.to_string());
        println!(
            "{:>9}  {hits:>4}  {passed:>6}  {again:>8}",
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
                let decision = limiter.check(&per_ip, Key::new("203.0.113.8")?).await?;
                Ok::<_, Box<dyn Error + Send + Sync>>(decision.allowed())
            });
        }
    }
    let mut passed = 0;
    for hit in racing.join_all().await {
        passed += usize::from(hit?);
    }
    println!("\n100 checks of four processes at one moment: {passed} passed");
    assert_eq!(passed, 10);
    Ok(())
}

/// A limiter as another process would open it: the same server, the same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

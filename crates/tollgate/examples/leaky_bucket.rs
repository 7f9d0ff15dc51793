//! Leaky bucket: shapes traffic to 20 requests per second, with at most 100 waiting.
//!
//! A token bucket lets a burst pass at once; a leaky bucket spreads it. The decision carries the
//! `delay` to wait before acting, so that no queue and no worker are needed. The output shows that
//! request 101 waits 5 s, that the next one is denied, and that departures are 50 ms apart.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Denied, Key, ManualClock, MemoryLimiter, Micros, Outcome, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let queue: Policy = "20/s queue 100".parse()?;
    let bucket: Policy = "20/s burst 101".parse()?;
    let key = Key::new("mailer")?;
    let mut departures = Vec::new();

    println!("request    at  {:<23}  {bucket}", queue.to_string());
    for request in 1..=106 {
        if request == 105 {
            clock.advance(Micros::from_millis(500));
        }
        let queued = limiter.check(&queue, key);
        let passed = limiter.check(&bucket, key);
        if queued.allowed {
            departures.push(clock.now().saturating_add(queued.delay));
        }
        if [1, 2, 3, 100, 101, 102, 104, 105, 106].contains(&request) {
            let status = match queued.outcome() {
                Outcome::Allowed { delay } => format!("leaves in {} s", Micros::from(delay)),
                Outcome::Denied(Denied::RetryAfter(span)) => {
                    format!("full, retry in {} s", Micros::from(span))
                }
                Outcome::Denied(denied) => denied.to_string(),
            };
            let at = clock.now().to_string();
            let through = if passed.allowed { "at once" } else { "denied" };
            println!("{request:>7}  {at:>4}  {status:<23}  {through}");
        }
        assert_eq!(queued.allowed, !(102..=104).contains(&request));
        assert_eq!(passed.delay, Micros::ZERO);
    }

    let gaps = departures.windows(2).map(|pair| pair[1].duration_since(pair[0]));
    assert!(gaps.clone().all(|gap| gap == Micros::from_millis(50)));
    println!("\n{} requests leave at intervals of 0.05 s", departures.len());
    assert_eq!(departures.len(), 103);
    Ok(())
}

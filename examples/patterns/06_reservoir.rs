//! Pattern 6: the reservoir. A time stamp, a level, a refill rate and an expiry; no buckets,
//! nothing to maintain. It is a token bucket: 240 an hour are one every 15 seconds.
//!
//! Versions that round the level at each look lose what had trickled in since the last one: a
//! client who asks often enough starves. See in the output that a hundred thousand refused looks
//! cost nothing, that the next unit is there after 15 s to the microsecond, and that the expiry is
//! the time to full, after which the key is forgotten.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let reservoir: Policy = "240/h".parse()?;
    let key = Key::new("user:42")?;
    let show = |what: &str| {
        let level = limiter.peek(&reservoir, key, Cost::ZERO);
        let full_in = level.reset_after.unwrap_or_default().to_string();
        println!(
            "{:>9}  {what:<23}  {:>5}  {full_in:>8}",
            clock.now().to_string(),
            level.remaining
        );
    };

    println!("{reservoir}\n");
    println!("{:>9}  {:<23}  {:>5}  {:>8}", "at", "", "level", "full in");
    assert!(limiter.check_cost(&reservoir, key, Cost::from(240)).allowed());
    show("all 240 spent");

    // A look every 150 µs or so, the last of them a microsecond too early.
    for look in 1..=100_000 {
        clock.set(Timestamp::from_micros(look * 14_999_999 / 100_000));
        assert!(!limiter.check(&reservoir, key).allowed());
    }
    show("100,000 denied");
    clock.advance(Micros::new(1));
    assert!(limiter.check(&reservoir, key).allowed());
    show("one allowed");

    clock.advance(Micros::from_secs(600));
    show("ten minutes later");
    let level = limiter.peek(&reservoir, key, Cost::ZERO);
    assert_eq!((level.remaining, level.reset_after), (40, Some(Micros::from_secs(200 * 15))));

    clock.advance(Micros::from_secs(200 * 15));
    show("as if never seen");
    clock.advance(Micros::from_secs(60));
    limiter.sweep(usize::MAX);
    println!("\nkeys held a minute later: {}", limiter.stats().keys);
    assert_eq!(limiter.stats().keys, 0);
    Ok(())
}

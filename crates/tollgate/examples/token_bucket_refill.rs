//! Token bucket refill: 240 per hour is one token every 15 seconds.
//!
//! Implementations that round the level at each access lose fractions, so that frequent denied
//! requests starve a client. The output shows that 100,000 denied requests lose nothing, that the next
//! token arrives after exactly 15 s, and that a key is removed once its bucket is full.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

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
    assert!(limiter.check_cost(&reservoir, key, Cost::from(240)).allowed);
    show("all 240 spent");

    // A request about every 150 µs, the last one a microsecond too early.
    for attempt in 1..=100_000 {
        clock.set(Timestamp::from_micros(attempt * 14_999_999 / 100_000));
        assert!(!limiter.check(&reservoir, key).allowed);
    }
    show("100,000 requests denied");
    clock.advance(Micros::new(1));
    assert!(limiter.check(&reservoir, key).allowed);
    show("one request allowed");

    clock.advance(Micros::from_secs(600));
    show("ten minutes later");
    let level = limiter.peek(&reservoir, key, Cost::ZERO);
    assert_eq!((level.remaining, level.reset_after), (40, Some(Micros::from_secs(200 * 15))));

    clock.advance(Micros::from_secs(200 * 15));
    show("full again");
    clock.advance(Micros::from_secs(60));
    limiter.sweep(usize::MAX);
    println!("\nkeys a minute later: {}", limiter.stats().keys);
    assert_eq!(limiter.stats().keys, 0);
    Ok(())
}

//! Token bucket: 10 tokens per second, with a capacity of 100.
//!
//! The bucket stores exact fractions, and `retry_after` is exact to the microsecond. The output shows
//! that 100 of 105 requests pass at once, that 50 tokens return after 5 s, and that 100 requests at
//! intervals of 33 ms lose no fraction of a token.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "10/s burst 100".parse()?;
    let user = Key::new("user:42")?;
    let left = |key| limiter.peek(&policy, key, Cost::ZERO).remaining;

    println!("{policy}\n\n  at  {:<16}  tokens left  retry in", "");
    let burst = |hits: usize| {
        let decisions: Vec<_> = (0..hits).map(|_| limiter.check(&policy, user)).collect();
        let passed = decisions.iter().filter(|decision| decision.allowed).count();
        let retry_after = decisions.last().and_then(|decision| decision.retry_after);
        let shown = retry_after.map_or("-".into(), |retry_after| format!("{retry_after} s"));
        let what = format!("{passed} of {hits} passed");
        println!("{:>4}  {what:<16}  {:>11}  {shown}", clock.now().to_string(), left(user));
        (passed, retry_after)
    };
    assert_eq!(burst(105), (100, Some(Micros::from_millis(100))));
    clock.advance(Micros::from_secs(5));
    println!("{:>4}  {:<16}  {:>11}", clock.now().to_string(), "after waiting", left(user));
    assert_eq!(left(user), 50);
    assert_eq!(burst(30), (30, None));
    assert_eq!(burst(25), (20, Some(Micros::from_millis(100))));

    // 100 requests, one every 33 ms, in which 0.33 tokens return.
    let steady = Key::new("user:43")?;
    for hit in 0..100 {
        if hit > 0 {
            clock.advance(Micros::from_millis(33));
        }
        assert!(limiter.check(&policy, steady).allowed);
    }
    // 100 spent, 99 × 0.33 returned: 32.67 tokens. The missing third arrives in 33 ms.
    let more = limiter.peek(&policy, steady, Cost::from(33));
    println!("\n100 requests, one every 33 ms: {} tokens left", left(steady));
    println!("33 more: denied, retry in {} s", more.retry_after.unwrap_or_default());
    assert_eq!(left(steady), 32);
    assert_eq!(more.retry_after, Some(Micros::from_millis(33)));
    Ok(())
}

//! Pattern 12: the token bucket, 10 a second with room for 100, and its demonstration: a burst of
//! 105, five seconds of waiting, a smaller burst.
//!
//! As usually written the tokens are a float, the time is in seconds and so is the wait. Here a
//! bucket holds exact fractions, and `retry_after` is the microsecond at which the next one passes.
//! See in the output the last 5 of 105 refused, 50 tokens back after 5 s, and a hit every 33 ms,
//! where no fraction of a token is lost.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "10/s burst 100".parse()?;
    let user = Key::new("user:42")?;
    let left = |key| limiter.peek(&policy, key, Cost::ZERO).remaining;

    println!("{policy}\n\n  at  {:<16}  tokens left  again in", "");
    let burst = |hits: usize| {
        let decisions: Vec<_> = (0..hits).map(|_| limiter.check(&policy, user)).collect();
        let passed = decisions.iter().filter(|decision| decision.allowed()).count();
        let again = decisions.last().and_then(|decision| decision.retry_after());
        let shown = again.map_or("-".into(), |again| format!("{again} s"));
        let what = format!("{passed} of {hits} passed");
        println!("{:>4}  {what:<16}  {:>11}  {shown}", clock.now().to_string(), left(user));
        (passed, again)
    };
    assert_eq!(burst(105), (100, Some(Micros::from_millis(100))));
    clock.advance(Micros::from_secs(5));
    println!("{:>4}  {:<16}  {:>11}", clock.now().to_string(), "after waiting", left(user));
    assert_eq!(left(user), 50);
    assert_eq!(burst(30), (30, None));
    assert_eq!(burst(25), (20, Some(Micros::from_millis(100))));

    // A hundred hits, one every 33 ms, in each of which 0.33 tokens come back.
    let steady = Key::new("user:43")?;
    for hit in 0..100 {
        if hit > 0 {
            clock.advance(Micros::from_millis(33));
        }
        assert!(limiter.check(&policy, steady).allowed());
    }
    // 100 spent, 99 × 0.33 back: 32.67 tokens. The missing third of one comes in 33 ms.
    let more = limiter.peek(&policy, steady, Cost::from(33));
    println!("\na hit every 33 ms, 100 times: {} tokens left", left(steady));
    println!("33 more: again in {} s", more.retry_after().unwrap_or_default());
    assert_eq!(left(steady), 32);
    assert_eq!(more.retry_after(), Some(Micros::from_millis(33)));
    Ok(())
}

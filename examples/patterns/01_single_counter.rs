//! Pattern 1: a single counter per IP, 10 a second, that opens with the first hit.
//!
//! The well-known version sends GET, and then INCR and EXPIRE: callers who race overshoot, and one
//! who dies before EXPIRE leaves a counter that never ends. Here a check decides, charges and sets
//! the end in one step. See in the output that the tick of the clock's second (at 1) changes
//! nothing, that exactly 10 of 100 racing threads pass, and that the counter's memory is given
//! back.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;
use std::thread;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let per_ip: Policy = "10/s fixed from-first count-denied".parse()?;
    let ip = Key::new("203.0.113.7")?;

    println!("{per_ip}\n");
    println!("{:>9}  {:>4}  {:>6}  {:>8}", "at", "hits", "passed", "again in");
    let rows = [(700_000, 10, 10), (300_000, 2, 0), (699_999, 1, 0), (1, 1, 1)];
    for (later_us, hits, expected) in rows {
        clock.advance(Micros::new(later_us));
        let decisions: Vec<_> = (0..hits).map(|_| limiter.check(&per_ip, ip)).collect();
        let passed = decisions.iter().filter(|decision| decision.allowed()).count();
        let again = decisions.iter().find_map(|decision| decision.retry_after());
        let again = again.map_or("-".into(), |again| again.to_string());
        println!("{:>9}  {hits:>4}  {passed:>6}  {again:>8}", clock.now().to_string());
        assert_eq!(passed, expected);
    }

    let racing = Key::new("203.0.113.8")?;
    let passed = thread::scope(|scope| {
        let hit = || limiter.check(&per_ip, racing).allowed();
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(hit)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|join| *join).count()
    });
    println!("\n100 threads at one moment: {passed} passed");
    assert_eq!(passed, 10);

    let held = limiter.stats().keys;
    clock.advance(Micros::from_secs(60));
    limiter.sweep(usize::MAX);
    println!("counters held: {held}, a minute later: {}", limiter.stats().keys);
    assert_eq!((held, limiter.stats().keys), (2, 0));
    Ok(())
}

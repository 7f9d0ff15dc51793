//! Fixed window: ten requests per second and IP address, counted from the first request.
//!
//! A counter built from GET, INCR and EXPIRE lets concurrent requests exceed the limit, and a client
//! that crashes before EXPIRE leaves a counter that never ends. Here one step checks, counts and sets
//! the expiry. The output shows that the boundary of a second (at 1) resets nothing, that 10 of 100
//! concurrent requests pass, and that expired counters free their memory.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::thread;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let per_ip: Policy = "10/s fixed from-first count-denied".parse()?;
    let ip = Key::new("203.0.113.7")?;

    println!("{per_ip}\n");
    println!("{:>9}  {:>4}  {:>6}  {:>8}", "at", "hits", "passed", "retry in");
    let rows = [(700_000, 10, 10), (300_000, 2, 0), (699_999, 1, 0), (1, 1, 1)];
    for (later_us, hits, expected) in rows {
        clock.advance(Micros::new(later_us));
        let decisions: Vec<_> = (0..hits).map(|_| limiter.check(&per_ip, ip)).collect();
        let passed = decisions.iter().filter(|decision| decision.allowed).count();
        let retry_after = decisions.iter().find_map(|decision| decision.retry_after);
        let retry_after = retry_after.map_or("-".into(), |retry_after| retry_after.to_string());
        println!("{:>9}  {hits:>4}  {passed:>6}  {retry_after:>8}", clock.now().to_string());
        assert_eq!(passed, expected);
    }

    let racing = Key::new("203.0.113.8")?;
    let passed = thread::scope(|scope| {
        let hit = || limiter.check(&per_ip, racing).allowed;
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(hit)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|join| *join).count()
    });
    println!("\n100 concurrent threads: {passed} passed");
    assert_eq!(passed, 10);

    let keys = limiter.stats().keys;
    clock.advance(Micros::from_secs(60));
    limiter.sweep(usize::MAX);
    println!("keys: {keys}, a minute later: {}", limiter.stats().keys);
    assert_eq!((keys, limiter.stats().keys), (2, 0));
    Ok(())
}

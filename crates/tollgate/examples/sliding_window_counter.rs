//! Sliding window counter: 15 s into a minute, 45/60 of the previous minute's count plus the current
//! count; a request above 100 is denied.
//!
//! The state is two counters, whatever the rate. The estimate assumes that requests were evenly
//! distributed over the previous minute. It is computed in integers and yields an exact `retry_after`.
//! The output shows the estimate, and both errors of the approximation: requests denied although the
//! last minute was empty, and 200 requests within a minute.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

/// Time in milliseconds, requests sent, requests allowed.
type Arrivals = [(u64, usize, usize)];

fn main() -> Result<(), Box<dyn Error>> {
    let cases: [(&str, &Arrivals); 3] = [
        // At 75 s, 45/60 of 80 are 60, so 40 pass. At 90 s, 30/60 of 80 and this minute's 40 are 80.
        ("estimate", &[(30_000, 80, 80), (75_000, 50, 40), (90_000, 50, 20)]),
        // 70 s after the burst the last minute is empty, but 50/60 of 100 still count.
        ("denied although the last minute is empty", &[(0, 100, 100), (70_000, 20, 17)]),
        // 0.002/60 of the previous 100 is less than one: at most 200 within a minute.
        ("twice the limit in a minute", &[(59_999, 100, 100), (119_998, 101, 100)]),
    ];
    println!("100/min sliding");
    for (name, arrivals) in cases {
        println!("\n{name}\n{:>7}  {:>4}  {:>6}  {:>8}", "at", "sent", "passed", "retry in");
        run(arrivals)?;
    }
    Ok(())
}

fn run(arrivals: &Arrivals) -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "100/min sliding".parse()?;
    let key = Key::new("user:42")?;
    for (millis, sent, expected) in arrivals {
        clock.set(Timestamp::EPOCH.saturating_add(Micros::from_millis(*millis)));
        let decisions: Vec<_> = (0..*sent).map(|_| limiter.check(&policy, key)).collect();
        let passed = decisions.iter().filter(|decision| decision.allowed).count();
        let retry = decisions.last().and_then(|decision| decision.retry_after);
        let retry_after = retry.map_or("-".into(), |retry| retry.to_string());
        let at = clock.now().to_string();
        println!("{at:>7}  {sent:>4}  {passed:>6}  {retry_after:>8}");
        assert_eq!(passed, *expected);

        // Denied one microsecond before, allowed at that time. Peeks change nothing.
        if let Some(retry) = retry {
            clock.advance(Micros::new(retry.get() - 1));
            assert!(!limiter.peek(&policy, key, Cost::ONE).allowed);
            clock.advance(Micros::new(1));
            assert!(limiter.peek(&policy, key, Cost::ONE).allowed);
        }
    }
    Ok(())
}

//! Pattern 11: a sliding window weighted from two counters. 15 s into a minute the estimate is
//! 45/60 of the previous minute's count plus this minute's; a request that would pass 100 is
//! refused.
//!
//! Two counters a key, whatever the rate. It is an approximation, and says so: it takes the
//! previous minute's hits as spread evenly. As usually written it computes in floats and cannot say
//! when to come back; here the estimate is an integer, and the retry exact. See in the output the
//! estimate at work, then what it costs: refused though the last minute is empty, and 200 in one
//! minute.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

/// Milliseconds, how many are sent, how many of them pass.
type Arrivals = [(u64, usize, usize)];

fn main() -> Result<(), Box<dyn Error>> {
    let cases: [(&str, &Arrivals); 3] = [
        // 45/60 of 80 are 60, so 40 fit; at 90 s 30/60 of 80 are 40, and 40 are of this minute.
        ("an estimate", &[(30_000, 80, 80), (75_000, 50, 40), (90_000, 50, 20)]),
        // 70 s after the burst the last minute is empty, but 50/60 of 100 still count.
        ("refused though empty", &[(0, 100, 100), (70_000, 20, 17)]),
        // Of the previous 100, 0.002/60 are less than one: 200 within a minute, never more.
        ("twice the limit", &[(59_999, 100, 100), (119_998, 101, 100)]),
    ];
    println!("100/min sliding");
    for (name, arrivals) in cases {
        println!("\n{name}\n{:>7}  {:>4}  {:>6}  {:>8}", "at", "sent", "passed", "again in");
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
        let passed = decisions.iter().filter(|decision| decision.allowed()).count();
        let retry = decisions.last().and_then(|decision| decision.retry_after());
        let again = retry.map_or("-".into(), |retry| retry.to_string());
        let at = clock.now().to_string();
        println!("{at:>7}  {sent:>4}  {passed:>6}  {again:>8}");
        assert_eq!(passed, *expected);

        // Refused until a microsecond before, admitted at it. Peeks, so that nothing changes.
        if let Some(retry) = retry {
            clock.advance(Micros::new(retry.get() - 1));
            assert!(!limiter.peek(&policy, key, Cost::ONE).allowed());
            clock.advance(Micros::new(1));
            assert!(limiter.peek(&policy, key, Cost::ONE).allowed());
        }
    }
    Ok(())
}

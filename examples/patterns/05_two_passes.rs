//! Pattern 5: the two-pass form of pattern 4. First every limit is asked, then all are charged or
//! none is, so only successes count; any cost; regular and sliding limits mixed.
//!
//! It cures two faults: a refused request that still counts, and the stampede when everybody's hour
//! resets at once. See in the output that what a refusal leaves is the same as before it, and that
//! the 20 spent at 6:05 come back at 7:05, not at 7:00.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "10/s fixed; 120/min fixed; 240/h sliding by 1m".parse()?;
    let user = Key::new("user:42")?;
    let check = |minute: u64, second: u64, cost: u32| {
        clock.set(
            Timestamp::EPOCH.saturating_add(Micros::from_secs(6 * 3600 + minute * 60 + second)),
        );
        limiter.check_cost(&policy, user, Cost::from(cost))
    };
    // What is left of the second, the minute and the hour, and when the same would pass.
    let show = |minute, second, cost, left: [u64; 3], again: Option<u64>| {
        let decision = check(minute, second, cost);
        let said = match decision.retry_after() {
            Some(span) => format!("denied, again in {span} s"),
            None if decision.never => "never: more than 10 at once".into(),
            None => "allowed".into(),
        };
        let time = format!("{:02}:{:02}:{second:02}", 6 + minute / 60, minute % 60);
        println!("{time}  {cost:>4}  {:<14}  {said}", format!("{left:?}"));
        let remaining: Vec<_> = decision.limits().iter().map(|limit| limit.remaining).collect();
        assert_eq!(
            (&remaining[..], decision.retry_after()),
            (&left[..], again.map(Micros::from_secs))
        );
    };

    println!("{policy}\n\ntime      cost  left");
    show(5, 0, 10, [0, 110, 230], None);
    show(5, 0, 1, [0, 110, 230], Some(1));
    show(5, 1, 10, [0, 100, 220], None);
    show(5, 2, 11, [10, 100, 220], None);
    println!("06:30:00  10 a minute, 22 times");
    for minute in 30..52 {
        assert!(check(minute, 0, 10).allowed());
    }
    show(59, 59, 1, [10, 120, 0], Some(5 * 60 + 1));
    show(60, 0, 1, [10, 120, 0], Some(5 * 60));
    show(64, 59, 1, [10, 120, 0], Some(1));
    show(65, 0, 10, [0, 110, 10], None);
    show(65, 1, 10, [0, 100, 0], None);
    show(65, 2, 1, [10, 100, 0], Some(25 * 60 - 2));
    Ok(())
}

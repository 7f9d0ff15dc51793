//! Several limits that count allowed requests only, with any cost, in fixed and sliding windows.
//!
//! All limits are checked before any is charged. The output shows that a denied request changes
//! nothing, and that the 20 units used at 6:05 return at 7:05 with the sliding window: clients do not
//! all recover at the full hour.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, Denied, Key, ManualClock, MemoryLimiter, Micros, Outcome, Policy, Timestamp};

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
    // The quota left in the second, the minute and the hour, and the seconds until a retry succeeds.
    let show = |minute, second, cost, left: [u64; 3], retry_after: Option<u64>| {
        let decision = check(minute, second, cost);
        let status = match decision.outcome() {
            Outcome::Allowed { .. } => "allowed".to_owned(),
            Outcome::Denied(Denied::RetryAfter(span)) => {
                format!("denied, retry in {} s", Micros::from(span))
            }
            Outcome::Denied(Denied::ExceedsCapacity) => "never: more than 10 at once".to_owned(),
            Outcome::Denied(denied) => denied.to_string(),
        };
        let time = format!("{:02}:{:02}:{second:02}", 6 + minute / 60, minute % 60);
        println!("{time}  {cost:>4}  {:<14}  {status}", format!("{left:?}"));
        let remaining: Vec<_> = decision.limits().iter().map(|limit| limit.remaining).collect();
        assert_eq!(
            (&remaining[..], decision.retry_after),
            (&left[..], retry_after.map(Micros::from_secs))
        );
    };

    println!("{policy}\n\ntime      cost  left");
    show(5, 0, 10, [0, 110, 230], None);
    show(5, 0, 1, [0, 110, 230], Some(1));
    show(5, 1, 10, [0, 100, 220], None);
    show(5, 2, 11, [10, 100, 220], None);
    println!("06:30:00  10 a minute, 22 times");
    for minute in 30..52 {
        assert!(check(minute, 0, 10).allowed);
    }
    show(59, 59, 1, [10, 120, 0], Some(5 * 60 + 1));
    show(60, 0, 1, [10, 120, 0], Some(5 * 60));
    show(64, 59, 1, [10, 120, 0], Some(1));
    show(65, 0, 10, [0, 110, 10], None);
    show(65, 1, 10, [0, 100, 0], None);
    show(65, 2, 1, [10, 100, 0], Some(25 * 60 - 2));
    Ok(())
}

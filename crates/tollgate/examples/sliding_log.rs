//! Sliding log: at most five units in any minute, wherever that minute starts.
//!
//! A log stores the time and cost of each allowed request. The output shows that each denied request
//! gets the exact time at which enough old entries expire, and that requests may cost more than one.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

/// Time in microseconds, cost, quota left, and for denied requests the time until a retry succeeds.
const ROWS: [(u64, u32, u64, Option<u64>); 10] = [
    (0, 1, 4, None),
    (10_000_000, 1, 3, None),
    (20_000_000, 3, 0, None),
    (30_000_000, 1, 0, Some(30_000_000)),
    (59_999_999, 1, 0, Some(1)),
    (60_000_000, 1, 0, None),
    (60_000_000, 1, 0, Some(10_000_000)),
    (70_000_000, 2, 1, Some(10_000_000)),
    (80_000_000, 2, 2, None),
    (80_000_000, 2, 0, None),
];

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let policy: Policy = "5/min log".parse()?;
    let key = Key::new("user:42")?;

    println!("{policy}\n");
    println!("{:>9}  {:>4}  {:<7}  {:>4}  {:>8}", "at", "cost", "", "left", "retry in");
    let mut admitted: Vec<(u64, u32)> = Vec::new();
    for (time, cost, left, retry_after) in ROWS {
        clock.set(Timestamp::from_micros(time));
        let decision = limiter.check_cost(&policy, key, Cost::from(cost));
        let status = if decision.allowed { "allowed" } else { "denied" };
        let retry = decision.retry_after.map_or("-".into(), |retry_after| retry_after.to_string());
        let at = clock.now().to_string();
        println!("{at:>9}  {cost:>4}  {status:<7}  {:>4}  {retry:>8}", decision.remaining);
        assert_eq!(
            (decision.remaining, decision.retry_after),
            (left, retry_after.map(Micros::new))
        );
        if decision.allowed {
            admitted.push((time, cost));
        }
    }

    let in_minute_to = |end: u64| -> u32 {
        let young = admitted.iter().filter(|(time, _)| *time <= end && end < time + 60_000_000);
        young.map(|(_, cost)| cost).sum()
    };
    let max = admitted.iter().map(|(time, _)| in_minute_to(*time)).max();
    println!("\nmost in any minute: {}", max.unwrap_or(0));
    assert_eq!(max, Some(5));
    Ok(())
}

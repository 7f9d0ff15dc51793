//! Pattern 8: a rolling minute, kept as a list of times. Once five are in it, a request is compared
//! with the oldest: while that is not yet a minute old, it is refused.
//!
//! No minute, wherever it begins, holds more than five: the edge of pattern 7 is gone. As usually
//! written the list knows milliseconds, and one element stands for one request whatever that costs.
//! See in the output that each refusal names the moment at which enough of the oldest have left,
//! that this holds to the microsecond, and that a request may cost more than one.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

/// Microseconds, cost, what is left after it, and when the same would pass if it was refused.
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
    println!("{:>9}  {:>4}  {:<7}  {:>4}  {:>8}", "at", "cost", "", "left", "again in");
    let mut admitted: Vec<(u64, u32)> = Vec::new();
    for (time, cost, left, again) in ROWS {
        clock.set(Timestamp::from_micros(time));
        let decision = limiter.check_cost(&policy, key, Cost::from(cost));
        let said = if decision.allowed() { "allowed" } else { "denied" };
        let retry =
            decision.retry_after().map_or("-".into(), |retry_after| retry_after.to_string());
        let at = clock.now().to_string();
        println!("{at:>9}  {cost:>4}  {said:<7}  {:>4}  {retry:>8}", decision.remaining);
        assert_eq!((decision.remaining, decision.retry_after()), (left, again.map(Micros::new)));
        if decision.allowed() {
            admitted.push((time, cost));
        }
    }

    let in_minute_to = |end: u64| -> u32 {
        let young = admitted.iter().filter(|(time, _)| *time <= end && end < time + 60_000_000);
        young.map(|(_, cost)| cost).sum()
    };
    let most = admitted.iter().map(|(time, _)| in_minute_to(*time)).max();
    println!("\nmost in any minute: {}", most.unwrap_or_default());
    assert_eq!(most, Some(5));
    Ok(())
}

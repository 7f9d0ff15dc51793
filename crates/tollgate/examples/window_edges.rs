//! Bursts at window edges, for three kinds of limits.
//!
//! Windows aligned to the clock admit ten requests in two seconds: five at 10:59:59 and five at
//! 11:00:01. A window that starts with the first request prevents this for a client that sends one
//! burst, but not for a client that opens the window early and waits for its end. Only the sliding log
//! prevents both.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

/// Seconds after 10:59:00, and the number of requests sent then.
type Arrivals = [(u64, usize)];
const ONE_BURST: &Arrivals = &[(59, 5), (61, 5)];
const OPENS_EARLY: &Arrivals = &[(0, 1), (59, 4), (61, 5)];

fn main() -> Result<(), Box<dyn Error>> {
    println!("allowed from 10:59:59 to 11:00:01\n");
    println!("{:<22}  {:>9}  {:>11}", "", "one burst", "opens early");
    let kinds = [("5/min fixed", 10, 9), ("5/min fixed from-first", 5, 9), ("5/min log", 5, 5)];
    for (limit, one_burst, opens_early) in kinds {
        let policy: Policy = limit.parse()?;
        let in_one_burst = passed(&policy, ONE_BURST)?;
        let opened_early = passed(&policy, OPENS_EARLY)?;
        println!("{limit:<22}  {in_one_burst:>9}  {opened_early:>11}");
        assert_eq!((in_one_burst, opened_early), (one_burst, opens_early));
    }
    Ok(())
}

/// The number of requests allowed in the two seconds around 11:00:00.
fn passed(policy: &Policy, arrivals: &Arrivals) -> Result<usize, Box<dyn Error>> {
    let start = Timestamp::EPOCH.saturating_add(Micros::from_secs(10 * 3600 + 59 * 60));
    let clock = ManualClock::at(start);
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let key = Key::new("user:42")?;
    let mut passed = 0;
    for (second, hits) in arrivals {
        clock.set(start.saturating_add(Micros::from_secs(*second)));
        let allowed = (0..*hits).filter(|_| limiter.check(policy, key).allowed).count();
        if *second >= 59 {
            passed += allowed;
        }
    }
    Ok(passed)
}

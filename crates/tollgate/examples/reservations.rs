//! Reservations: charge now and act after the `delay`. For clients of a rate-limited API, this
//! replaces polling with checks, and serves callers in order.
//!
//! The output shows the delay of each caller, that a request which would wait longer than its limit is
//! denied and costs nothing, and that a cancellation returns the charge once.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, Decision, Denied, Key, ManualClock, MemoryLimiter, Micros, Outcome, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let upstream: Policy = "2/s burst 2".parse()?;
    let api = Key::new("api.example")?;
    let max_wait = Micros::from_secs(1);
    let reserve = |who: &str| -> Result<Decision, Box<dyn Error>> {
        let reserve = limiter.reserve(&upstream, api, Cost::ONE, max_wait)?;
        let at = clock.now().to_string();
        match reserve.outcome() {
            Outcome::Allowed { delay } => {
                println!("{at:>4}  {who:<5}  sends in {} s", Micros::from(delay));
            }
            Outcome::Denied(Denied::RetryAfter(span)) => {
                println!("{at:>4}  {who:<5}  denied, retry in {} s", Micros::from(span));
            }
            Outcome::Denied(denied) => println!("{at:>4}  {who:<5}  {denied}"),
        }
        Ok(reserve)
    };

    println!("{upstream}, waiting at most {max_wait} s\n");
    for (who, delay_ms) in [("ann", 0), ("bob", 0), ("cleo", 500)] {
        assert_eq!(reserve(who)?.delay, Micros::from_millis(delay_ms));
    }
    let dan = reserve("dan")?;
    assert_eq!(dan.delay, Micros::from_secs(1));
    assert!(!reserve("eve")?.allowed);

    let reservation = dan.reservation.ok_or("an admitted reservation has an id")?;
    let cancelled = limiter.cancel(&upstream, api, reservation)?;
    println!("{:>4}  dan    cancels: {} returned", clock.now().to_string(), cancelled.granted);
    let twice = limiter.cancel(&upstream, api, reservation)?;
    println!("{:>4}  dan    cancels again: {} returned", clock.now().to_string(), twice.granted);
    assert_eq!((cancelled.granted, twice.granted), (1, 0));

    // Eve gets the slot that dan cancelled.
    assert_eq!(reserve("eve")?.delay, Micros::from_secs(1));
    clock.advance(Micros::from_millis(500));
    assert_eq!(reserve("fay")?.delay, Micros::from_secs(1));
    Ok(())
}

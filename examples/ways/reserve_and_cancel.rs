//! Reserve: charge now, act later. A client of somebody else's API asks when it may send, sleeps
//! for the answer's `delay` and sends, rather than trying again and again.
//!
//! Looping over a check wakes callers who find nothing, and serves whoever is lucky. A reservation
//! has its turn. See in the output that each is told its moment, that a wait longer than the
//! caller's own is refused whole and costs nothing, and that cancelling gives the turn back, once.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Cost, Decision, Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let upstream: Policy = "2/s burst 2".parse()?;
    let api = Key::new("api.example")?;
    let patience = Micros::from_secs(1);
    let reserve = |who: &str| -> Result<Decision, Box<dyn Error>> {
        let reserve = limiter.reserve(&upstream, api, Cost::ONE, patience)?;
        let at = clock.now().to_string();
        match reserve.retry_after() {
            None => println!("{at:>4}  {who:<5}  sends in {} s", reserve.delay),
            Some(span) => println!("{at:>4}  {who:<5}  would wait too long, again in {span} s"),
        }
        Ok(reserve)
    };

    println!("{upstream}, waiting at most {patience} s\n");
    for (who, delay_ms) in [("ann", 0), ("bob", 0), ("cleo", 500)] {
        assert_eq!(reserve(who)?.delay, Micros::from_millis(delay_ms));
    }
    let dan = reserve("dan")?;
    assert_eq!(dan.delay, Micros::from_secs(1));
    assert!(!reserve("eve")?.allowed());

    let reservation = dan.reservation.ok_or("an admitted reservation has an id")?;
    let cancelled = limiter.cancel(&upstream, api, reservation)?;
    println!("{:>4}  dan    cancels: {} back", clock.now().to_string(), cancelled.granted);
    let twice = limiter.cancel(&upstream, api, reservation)?;
    println!("{:>4}  dan    cancels again: {} back", clock.now().to_string(), twice.granted);
    assert_eq!((cancelled.granted, twice.granted), (1, 0));

    // Dan's turn is eve's now.
    assert_eq!(reserve("eve")?.delay, Micros::from_secs(1));
    clock.advance(Micros::from_millis(500));
    assert_eq!(reserve("fay")?.delay, Micros::from_secs(1));
    Ok(())
}

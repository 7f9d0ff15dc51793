//! Pattern 13: the leaky bucket that shapes traffic. Requests leave 20 a second whatever the
//! bursts, at most 100 wait, and the overflow is discarded.
//!
//! It is not the token bucket under another name: that lets a burst through at once, this spreads
//! it out. The answer carries a `delay`: wait that long, then act. The well-known version wants a
//! queue and a worker that drains it; here one time a key is enough. See in the output that the
//! hundred and first waits 5 s, that the next is refused, and that departures are 50 ms apart.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let queue: Policy = "20/s queue 100".parse()?;
    let bucket: Policy = "20/s burst 101".parse()?;
    let key = Key::new("mailer")?;
    let mut departures = Vec::new();

    println!("request    at  {:<23}  {bucket}", queue.to_string());
    for request in 1..=106 {
        if request == 105 {
            clock.advance(Micros::from_millis(500));
        }
        let queued = limiter.check(&queue, key);
        let passed = limiter.check(&bucket, key);
        if queued.allowed() {
            departures.push(clock.now().saturating_add(queued.delay));
        }
        if [1, 2, 3, 100, 101, 102, 104, 105, 106].contains(&request) {
            let said = match queued.retry_after() {
                None => format!("leaves in {} s", queued.delay),
                Some(span) => format!("full, again in {span} s"),
            };
            let at = clock.now().to_string();
            let through = if passed.allowed() { "at once" } else { "denied" };
            println!("{request:>7}  {at:>4}  {said:<23}  {through}");
        }
        assert_eq!(queued.allowed(), !(102..=104).contains(&request));
        assert_eq!(passed.delay, Micros::ZERO);
    }

    let gaps = departures.windows(2).map(|pair| pair[1].duration_since(pair[0]));
    assert!(gaps.clone().all(|it| it == Micros::from_millis(50)));
    println!("\n{} leave, each 0.05 s after the one before", departures.len());
    assert_eq!(departures.len(), 103);
    Ok(())
}

//! Concurrency limit: at most two reports at once. A check acquires a lease, `renew` extends it for a
//! long job, `release` returns it.
//!
//! A counter of requests in flight loses a slot whenever a worker crashes. A lease expires instead.
//! The output shows that the slot of the crashed worker returns at 60, that the renewed lease stays,
//! and that a second release has no effect.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Decision, Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let reports: Policy = "2 concurrent lease 60s".parse()?;
    let tenant = Key::new("tenant:acme")?;
    let show = |what: &str, decision: Decision, expected: &str| {
        let status = match (decision.allowed, decision.changed) {
            (false, _) => "denied",
            (true, false) => "nothing to do",
            (true, true) => "done",
        };
        let used = limiter.inspect(&reports, tenant).limits[0].used;
        let retry = decision
            .retry_after
            .map_or(String::new(), |retry_after| format!(", retry in {retry_after} s"));
        println!("{:>4}  {used:>4}  {what:<23}  {status}{retry}", clock.now().to_string());
        assert_eq!(status, expected);
        decision.lease
    };

    println!("{reports}\n\n  at  used");
    let steady = show("steady starts", limiter.check(&reports, tenant), "done");
    let steady = steady.ok_or("an admitted check carries its lease")?;
    let crashing = show("crashing starts", limiter.check(&reports, tenant), "done");
    let crashing = crashing.ok_or("an admitted check carries its lease")?;
    show("third starts", limiter.check(&reports, tenant), "denied");

    clock.advance(Micros::from_secs(40));
    show("steady renews", limiter.renew(&reports, tenant, steady)?, "done");

    clock.advance(Micros::from_secs(20));
    show("third starts", limiter.check(&reports, tenant), "done");
    show("crashing renews, late", limiter.renew(&reports, tenant, crashing)?, "nothing to do");
    show("crashing releases, late", limiter.release(&reports, tenant, crashing)?, "nothing to do");
    show("fourth starts", limiter.check(&reports, tenant), "denied");

    show("steady releases", limiter.release(&reports, tenant, steady)?, "done");
    show("steady releases again", limiter.release(&reports, tenant, steady)?, "nothing to do");
    show("fourth starts", limiter.check(&reports, tenant), "done");
    Ok(())
}

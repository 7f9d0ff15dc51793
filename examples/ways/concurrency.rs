//! Requests in flight: at most two reports are made at once. A check acquires a lease, `release`
//! gives the place back, `renew` keeps it for a longer job.
//!
//! Counters that go up at the start and down at the end leak a place whenever a worker dies
//! between. Here the place of a worker who was not heard of for a lease's length returns by itself.
//! See in the output that the crashed one's place comes back at 60, that the renewed one's does
//! not, and that releasing twice frees nobody else's place.
//!
//! Real code leaves `.clock(…)` out, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::error::Error;

use tollgate::{Decision, Key, ManualClock, MemoryLimiter, Micros, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let reports: Policy = "2 concurrent lease 60s".parse()?;
    let tenant = Key::new("tenant:acme")?;
    let show = |what: &str, decision: Decision, expected: &str| {
        let said = match (decision.allowed(), decision.changed) {
            (false, _) => "denied",
            (true, false) => "nothing to do",
            (true, true) => "done",
        };
        let held = limiter.inspect(&reports, tenant).limits[0].used;
        let again = decision
            .retry_after()
            .map_or(String::new(), |retry_after| format!(", again in {retry_after} s"));
        println!("{:>3}  {held:>4}  {what:<23}  {said}{again}", clock.now().to_string());
        assert_eq!(said, expected);
        decision.lease
    };

    println!("{reports}\n\n at  held");
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

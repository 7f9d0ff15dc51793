//! Daily quotas: ten text messages per user, and transfers of at most $2,000 per customer.
//!
//! The cost of a transfer is its amount in cents, so that the sum is limited instead of the number of
//! transfers. A `log` covers any 24 hours; midnight resets nothing. The output shows that a denied
//! amount leaves room for a smaller one, and that an amount above the limit is denied for ever.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, Key, ManualClock, MemoryLimiter, Micros, Policies, Timestamp};

/// The hour, the amount in cents, whether it is allowed, and the quota left.
const TRANSFERS: [(u64, u32, bool, u64); 7] = [
    (9, 150_000, true, 50_000),
    (10, 60_000, false, 50_000),
    (10, 49_999, true, 1),
    (24, 100, false, 1),
    (33, 150_002, false, 150_001),
    (33, 150_000, true, 1),
    (33, 200_001, false, 1),
];

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let hour = |hour| clock.set(Timestamp::EPOCH.saturating_add(Micros::from_secs(hour * 3600)));
    let mut policies = Policies::new();
    policies.define("sms", "10/d log")?;
    policies.define("transfer", "200000/d log")?;
    let (sms, transfer) = (policies.get("sms")?, policies.get("transfer")?);

    println!("sms: {sms}\n\nhour  sent  passed");
    let user = Key::new("user:42")?;
    for (at, sent, expected) in [(8, 4, 4), (20, 7, 6), (24, 1, 0), (32, 5, 4)] {
        hour(at);
        let passed = (0..sent).filter(|_| limiter.check(sms, user).allowed).count();
        println!("{at:>4}  {sent:>4}  {passed:>6}");
        assert_eq!(passed, expected);
    }

    println!("\ntransfer: {transfer}, in cents\n");
    println!("hour   amount           left  retry in");
    let customer = Key::new("customer:7")?;
    for (at, cents, allowed, left) in TRANSFERS {
        hour(at);
        let decision = limiter.check_cost(transfer, customer, Cost::from(cents));
        let status = if decision.allowed { "allowed" } else { "denied" };
        let retry_after = match decision.retry_after {
            Some(span) => format!("{} h", span.get() / 3_600_000_000),
            None if decision.never => "never".into(),
            None => "-".into(),
        };
        println!("{at:>4}  {cents:>7}  {status:<7}  {:>6}  {retry_after}", decision.remaining);
        assert_eq!((decision.allowed, decision.remaining), (allowed, left));
    }
    Ok(())
}

//! Limits by tier: the plan of an account chooses its limits. Accounts count alone, and one that changes
//! its plan keeps what it has used.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Cost, ManualClock, MemoryLimiter, Overrides, Policies, Tiers};

fn main() -> Result<(), Box<dyn Error>> {
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    let mut policies = Policies::new();
    policies.define("api", "100/h log")?;
    let mut tiers = Tiers::new();
    tiers.add("pro", "1000/h log")?;
    policies.set_tiers("api", &tiers)?;
    // One account has a contract of its own.
    let mut overrides = Overrides::builder();
    overrides.add("acme", "5000/h log")?;
    policies.set_overrides("api", &overrides.build())?;

    println!("account  plan  uses  remaining");
    let used = |account: &str, plan: Option<&str>, cost: u32| -> Result<u64, Box<dyn Error>> {
        let policy = policies.resolve("api", account.as_bytes(), plan)?;
        let decision = limiter.check_cost(policy, account, Cost::from(cost));
        let plan = plan.unwrap_or("none");
        println!("{account:<7}  {plan:<4}  {cost:>4}  {:>9}", decision.remaining);
        Ok(decision.remaining)
    };
    assert_eq!(used("ann", None, 60)?, 40);
    assert_eq!(used("bob", Some("pro"), 60)?, 940);
    assert_eq!(used("acme", None, 60)?, 4_940);
    // Ann upgrades: 60 of 1,000 are used.
    assert_eq!(used("ann", Some("pro"), 0)?, 940);
    assert!(policies.resolve("api", b"ann", Some("platinum")).is_err(), "an unknown tier");
    Ok(())
}

//! Request ids: retries are idempotent. Within the horizon, 30 s by default, a request with the id of
//! an allowed one gets the same decision and is not charged again.
//!
//! Without ids, a client that timed out cannot retry without the risk of a second charge. The output
//! shows that the retry is marked as replayed and charges nothing, that the same id with a different
//! cost is an error, that denials are not recorded, and that ids expire after the horizon.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{
    Check, Cost, Decision, ManualClock, MemoryLimiter, Micros, Operation, Policy, Request,
    RequestError,
};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let transfer: Policy = "1000/d log".parse()?;
    let send = |id: &str, amount: u32| -> Result<Decision, RequestError> {
        let checks = [Check { policy: &transfer, key: b"customer:7", cost: Cost::from(amount) }];
        let request_id = Some(id.as_bytes());
        let request =
            Request { operation: Operation::Check { lease: None }, checks: &checks, request_id };
        let answer = limiter.decide(&request);
        let status = match &answer {
            Err(error) => error.to_string(),
            Ok(answer) => {
                let decision = &answer.decisions[0];
                let status = if decision.allowed { "allowed" } else { "denied" };
                let replayed = if decision.replayed { ", replayed" } else { "" };
                format!("{status}{replayed}, {} left", decision.remaining)
            }
        };
        println!("{:>3}  {id}  {amount:>4}  {status}", clock.now().to_string());
        answer.map(|answer| answer.decisions.into_iter().next().unwrap_or_default())
    };

    println!("{transfer}\n\n{:>3}  id  cost", "at");
    let first = send("a1", 300)?;
    clock.advance(Micros::from_secs(2));
    let retry = send("a1", 300)?;
    assert!(retry.replayed && retry.remaining == 700 && retry.time == first.time);
    assert_eq!(send("a1", 400), Err(RequestError::RequestIdReused));
    assert!(!send("b2", 800)?.allowed);
    assert!(!send("b2", 800)?.replayed);
    assert!(send("c3", 300)?.allowed);
    clock.advance(Micros::from_secs(30));
    let later = send("a1", 300)?;
    assert!(!later.replayed && later.remaining == 100);
    Ok(())
}

//! A manual clock in your tests: an hour passes at once, and tests need not sleep.
//!
//! `Login` is a service that receives its limiter, so that a test can pass one with a manual clock.
//! The output shows that the wait is exact to the microsecond. In production, use
//! `MemoryLimiter::new()`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy};

struct Login {
    limiter: MemoryLimiter,
    attempts: Policy,
}

impl Login {
    fn new(limiter: MemoryLimiter) -> Result<Self, Box<dyn Error>> {
        Ok(Login { limiter, attempts: "3/h log".parse()? })
    }

    /// `None` if the attempt is allowed, otherwise the time to wait.
    fn attempt(&self, user: &str) -> Result<Option<Micros>, Box<dyn Error>> {
        Ok(self.limiter.check(&self.attempts, Key::new(user)?).retry_after)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let login = Login::new(MemoryLimiter::builder().clock(clock.clone()).build())?;
    let attempt = |expected: Option<Micros>| -> Result<(), Box<dyn Error>> {
        let wait = login.attempt("eve")?;
        let status = wait.map_or("allowed".into(), |wait| format!("retry in {wait} s"));
        println!("{:>11}  {status}", clock.now().to_string());
        assert_eq!(wait, expected);
        Ok(())
    };

    println!("{}\n\n{:>11}", login.attempts, "at");
    for _ in 0..3 {
        attempt(None)?;
    }
    attempt(Some(Micros::from_secs(3600)))?;
    clock.advance(Micros::new(3_599_999_999));
    attempt(Some(Micros::new(1)))?;
    clock.advance(Micros::new(1));
    attempt(None)?;
    Ok(())
}

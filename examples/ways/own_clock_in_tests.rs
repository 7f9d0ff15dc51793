//! Your own tests, with your own clock: an hour passes at once, and a test never sleeps.
//!
//! `Login` is a service as it might stand in your code: it is given its limiter, so a test gives it
//! one whose clock stands still until it is moved. See in the output that the wait is exact: one
//! microsecond before its end the door is shut, at its end it opens.
//!
//! Real code leaves `.clock(…)` out, or calls `MemoryLimiter::new()`, and gets this machine's
//! clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

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

    /// Nothing if the attempt may go on, else how long to wait.
    fn attempt(&self, user: &str) -> Result<Option<Micros>, Box<dyn Error>> {
        Ok(self.limiter.check(&self.attempts, Key::new(user)?).retry_after())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let login = Login::new(MemoryLimiter::builder().clock(clock.clone()).build())?;
    let attempt = |expected: Option<Micros>| -> Result<(), Box<dyn Error>> {
        let wait = login.attempt("eve")?;
        let said = wait.map_or("goes on".into(), |wait| format!("waits {wait} s"));
        println!("{:>11}  {said}", clock.now().to_string());
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

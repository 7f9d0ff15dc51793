//! A background job that sends 5 messages a second to a provider, and no more: `until_allowed` waits for
//! a place in the queue of the policy, at most a minute.
//!
//! The output shows that two workers together keep the rate, that each message has its turn, and that a
//! worker that is stopped while it waits takes no turn from the others.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate::{Clock, Cost, Denied, Limiter, MemoryLimiter, Policy, Timestamp};

/// Time passes only while all tasks wait, so that every run prints the same.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let clock = Clock::from_fn(move || Timestamp::EPOCH.saturating_add(start.elapsed().into()));
    let limiter = Limiter::from(MemoryLimiter::builder().clock(clock).build());
    let provider = Policy::named("provider", "5/s queue 100")?;

    let worker = |name: &'static str, messages: u32| {
        let (limiter, provider) = (limiter.clone(), provider.clone());
        tokio::spawn(async move {
            for message in 1..=messages {
                let minute = Duration::from_secs(60);
                limiter.until_allowed(&provider, "sms", Cost::ONE, minute).await.map(drop)?;
                println!("{:>4} ms  {name} sends message {message}", start.elapsed().as_millis());
            }
            Ok::<_, Denied>(())
        })
    };
    let (first, second, stopped) = (worker("first", 4), worker("second", 3), worker("stopped", 9));
    sleep(Duration::from_millis(300)).await;
    stopped.abort();
    first.await??;
    second.await??;
    // Seven messages, and one of the stopped worker, the first at once.
    assert!(start.elapsed() <= Duration::from_millis(1_600), "{:?}", start.elapsed());

    // A wait that would be too long is refused at once.
    let second = Duration::from_secs(1);
    limiter.until_allowed(&provider, "sms", Cost::from(50), 60 * second).await.map(drop)?;
    let denied = limiter.until_allowed(&provider, "sms", Cost::ONE, second).await.map(drop);
    assert!(matches!(denied, Err(Denied::RetryAfter(_))), "{denied:?}");
    println!("a message that would wait longer than a second is denied");
    Ok(())
}

//! Permits: at most two reports of a tenant at once. A permit renews its lease while a job runs, however
//! long that takes, and releases it when it is dropped: also if the job fails, panics or is cancelled.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate::{Clock, Cost, Denied, Limiter, MemoryLimiter, Policy, Timestamp};

/// Creates a report, unless two are being created already.
async fn report(limiter: &Limiter, reports: &Policy, minutes: u64) -> Result<(), Denied> {
    let _permit = limiter.acquire(reports, "tenant:acme").await?;
    sleep(Duration::from_secs(60 * minutes)).await;
    Ok(())
}

/// Time passes only while all tasks wait, so that every run prints the same.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let clock = Clock::from_fn(move || Timestamp::EPOCH.saturating_add(start.elapsed().into()));
    let limiter = Limiter::from(MemoryLimiter::builder().clock(clock).build());
    let reports = Policy::named("reports", "2 concurrent lease 60s")?;
    let free = async || limiter.peek(&reports, "tenant:acme", Cost::ONE).await.remaining;
    let spawn = |minutes| {
        let (limiter, reports) = (limiter.clone(), reports.clone());
        tokio::spawn(async move { report(&limiter, &reports, minutes).await })
    };

    let (long, cancelled) = (spawn(30), spawn(30));
    sleep(Duration::from_secs(600)).await;
    println!("after 10 minutes: {} free", free().await);
    assert_eq!(free().await, 0, "the leases of a minute are renewed");
    let denied = report(&limiter, &reports, 1).await;
    println!("a third report: {}", denied.err().ok_or("admitted")?);

    cancelled.abort();
    assert!(cancelled.await.is_err_and(|error| error.is_cancelled()));
    println!("after one is cancelled: {} free", free().await);
    assert_eq!(free().await, 1);
    report(&limiter, &reports, 1).await?;
    long.await??;
    println!("at the end: {} free", free().await);
    assert_eq!(free().await, 2);
    Ok(())
}

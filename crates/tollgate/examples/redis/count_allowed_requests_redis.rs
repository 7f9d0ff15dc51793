//! Several limits that count allowed requests only, on Redis or Valkey, with any cost, in fixed and
//! sliding windows.
//!
//! One script call checks all limits before it charges any, and a denied request writes nothing. The
//! output shows that a denied request changes nothing, and that the 20 units used at 6:05 return at
//! 7:05.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{
    Cost, Denied, Key, Limiter, ManualClock, Micros, Outcome, Policy, Timestamp, random_id,
};

/// The minute after 6:00, the second, the cost, the quota left, and the seconds until a retry
/// succeeds.
type Row = (u64, u64, u32, [u64; 3], Option<u64>);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A new namespace for each run, so that runs are independent.
    let namespace = format!("example-count-allowed-requests-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let limiter = builder.clock(clock.clone()).open(&url).await?;
    let policy: Policy = "10/s fixed; 120/min fixed; 240/h sliding by 1m".parse()?;
    let user = Key::new("user:42")?;
    println!("{policy}\n\ntime      cost  left");
    let rows: [Row; 10] = [
        (5, 0, 10, [0, 110, 230], None),
        (5, 0, 1, [0, 110, 230], Some(1)),
        (5, 1, 10, [0, 100, 220], None),
        (5, 2, 11, [10, 100, 220], None),
        (59, 59, 1, [10, 120, 0], Some(5 * 60 + 1)),
        (60, 0, 1, [10, 120, 0], Some(5 * 60)),
        (64, 59, 1, [10, 120, 0], Some(1)),
        (65, 0, 10, [0, 110, 10], None),
        (65, 1, 10, [0, 100, 0], None),
        (65, 2, 1, [10, 100, 0], Some(25 * 60 - 2)),
    ];
    for (minute, second, cost, left, retry_after) in rows {
        if minute == 59 {
            println!("06:30:00  10 a minute, 22 times");
            for minute in 30..52 {
                clock.set(start.saturating_add(Micros::from_secs(minute * 60)));
                assert!(limiter.check_cost(&policy, user, Cost::from(10)).await.allowed);
            }
        }
        clock.set(start.saturating_add(Micros::from_secs(minute * 60 + second)));
        let decision = limiter.check_cost(&policy, user, Cost::from(cost)).await;
        let status = match decision.outcome() {
            Outcome::Allowed { .. } => "allowed".to_owned(),
            Outcome::Denied(Denied::RetryAfter(span)) => {
                format!("denied, retry in {} s", Micros::from(span))
            }
            Outcome::Denied(Denied::ExceedsCapacity) => "never: more than 10 at once".to_owned(),
            Outcome::Denied(denied) => denied.to_string(),
        };
        let time = format!("{:02}:{:02}:{second:02}", 6 + minute / 60, minute % 60);
        println!("{time}  {cost:>4}  {:<14}  {status}", format!("{left:?}"));
        let remaining: Vec<_> = decision.limits().iter().map(|limit| limit.remaining).collect();
        let expected = (&left[..], retry_after.map(Micros::from_secs));
        assert_eq!((&remaining[..], decision.retry_after), expected);
    }
    Ok(())
}

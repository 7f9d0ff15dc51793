//! Pattern 3 on Redis or Valkey: the hits of each second, read over the last 1, 10 and 15 seconds.
//!
//! The well-known version keeps a key per second, with braces in its name to bring an IP's seconds
//! onto one cluster slot, and reads 15 keys a request. Here an IP's three limits are one key and a
//! few that belong to it, in one slot whatever the IP's name, and one script call is all. See in the
//! output which limit stops the client, and that who goes on knocking stays out.
//!
//! Real code leaves `.clock(…)` out, and gets the server's time; and leaves `.deadline(…)` out, and
//! has every answer within 15 ms. The first argument is the server's URL.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{Cost, Key, Limiter, ManualClock, Micros, OpenError, Policy, Timestamp, random_id};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A namespace of this run's own, so that it finds nothing of an earlier one.
    let namespace = format!("example-03-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let limiter = open(&namespace, &clock).await?;
    let per_ip: Policy = "1000/s sliding by 1s count-denied; 5000/10s sliding by 1s count-denied; \
                          7000/15s sliding by 1s count-denied"
        .parse()?;
    let ips = [("patient", Key::new("203.0.113.7")?), ("stubborn", Key::new("203.0.113.8")?)];
    for limit in per_ip.limits() {
        println!("{limit}");
    }
    // Both send 1,000 hits in each of the first six seconds. Then one rests, the other does not.
    println!("\nsecond  {:<28}  stubborn", "patient");
    let mut passed = [Vec::new(), Vec::new()];
    for second in 0..18 {
        clock.set(start.saturating_add(Micros::from_secs(second)));
        let mut said = Vec::new();
        for ((name, ip), passed) in ips.iter().zip(&mut passed) {
            if *name == "patient" && (6..15).contains(&second) {
                said.push("-".to_owned());
                continue;
            }
            let (mut hits, mut by) = (0, String::new());
            // Ten requests that cost a hundred each.
            for _ in 0..10 {
                let decision = limiter.check_cost(&per_ip, *ip, Cost::from(100)).await?;
                hits += decision.granted;
                if !decision.allowed() && by.is_empty() {
                    let window = per_ip.limits()[decision.binding].spec().window;
                    by = format!("  by the last {window} s");
                }
            }
            said.push(format!("{hits} of 1000{by}"));
            passed.push(hits);
        }
        println!("{second:>6}  {:<28}  {}", said[0], said[1]);
    }
    assert_eq!(passed[0], [1000, 1000, 1000, 1000, 1000, 0, 1000, 1000, 1000]);
    assert_eq!(passed[1][5..], [0; 13]);
    Ok(())
}

/// A limiter as another process would open it: the same server, the same namespace.
async fn open(namespace: &str, clock: &ManualClock) -> Result<Limiter, OpenError> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    builder.clock(clock.clone()).open(&url).await
}

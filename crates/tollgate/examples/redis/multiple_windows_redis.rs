//! One key limited over several windows, on Redis or Valkey: at most 1,000 requests in 1 s, 5,000 in
//! 10 s and 7,000 in 15 s. Denied requests count too.
//!
//! All windows of a key are in one hash slot and take one script call. The output shows which window
//! denies, and that a client that keeps sending stays denied.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::time::Duration;

use tollgate::{Cost, Key, Limiter, ManualClock, Micros, Policy, Timestamp, random_id};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A new namespace for each run, so that runs are independent.
    let namespace = format!("example-multiple-windows-{}", random_id());
    let start = Timestamp::from_micros(1_763_640_000_000_000);
    let clock = ManualClock::at(start);
    let builder = Limiter::builder().namespace(namespace).deadline(Duration::from_secs(5));
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let limiter = builder.clock(clock.clone()).open(&url).await?;
    let per_ip: Policy = "1000/s sliding by 1s count-denied; 5000/10s sliding by 1s count-denied; \
                          7000/15s sliding by 1s count-denied"
        .parse()?;
    let ips = [("patient", Key::new("203.0.113.7")?), ("stubborn", Key::new("203.0.113.8")?)];
    for limit in per_ip.limits() {
        println!("{limit}");
    }
    // Both send 1,000 requests in each of the first six seconds. Then one pauses.
    println!("\nsecond  {:<28}  stubborn", "patient");
    let mut passed = [Vec::new(), Vec::new()];
    for second in 0..18 {
        clock.set(start.saturating_add(Micros::from_secs(second)));
        let mut lines = Vec::new();
        for ((name, ip), passed) in ips.iter().zip(&mut passed) {
            if *name == "patient" && (6..15).contains(&second) {
                lines.push("-".to_owned());
                continue;
            }
            let (mut hits, mut by) = (0, String::new());
            // Ten requests that cost a hundred each.
            for _ in 0..10 {
                let decision = limiter.check_cost(&per_ip, *ip, Cost::from(100)).await;
                hits += decision.granted;
                if !decision.allowed && by.is_empty() {
                    let window = per_ip.limits()[decision.binding].spec().window;
                    by = format!("  by the last {window} s");
                }
            }
            lines.push(format!("{hits} of 1000{by}"));
            passed.push(hits);
        }
        println!("{second:>6}  {:<28}  {}", lines[0], lines[1]);
    }
    assert_eq!(passed[0], [1000, 1000, 1000, 1000, 1000, 0, 1000, 1000, 1000]);
    assert_eq!(passed[1][5..], [0; 13]);
    Ok(())
}

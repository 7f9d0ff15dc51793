//! One key limited over several windows: at most 1,000 requests in 1 s, 5,000 in 10 s and 7,000 in
//! 15 s, so that short bursts pass and sustained load does not. Denied requests count too.
//!
//! All windows of a key share one entry and one lookup. The output shows which window denies, that a
//! client that keeps sending stays denied, and that a client that pauses recovers.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let per_ip: Policy = "1000/s sliding by 1s count-denied; 5000/10s sliding by 1s count-denied; \
                          7000/15s sliding by 1s count-denied"
        .parse()?;
    let (patient, stubborn) = (Key::new("203.0.113.7")?, Key::new("203.0.113.8")?);
    let hits = |ip, hits| {
        let decisions: Vec<_> = (0..hits).map(|_| limiter.check(&per_ip, ip)).collect();
        let passed = decisions.iter().filter(|decision| decision.allowed).count();
        let denial = decisions.iter().find(|decision| !decision.allowed);
        let by = denial.map(|denial| per_ip.limits()[denial.binding].spec().window);
        let shown = by.map_or(String::new(), |window| format!("  by the last {window} s"));
        (passed, format!("{passed} of {hits}{shown}"))
    };

    for limit in per_ip.limits() {
        println!("{limit}");
    }
    // Both send 1,000 requests in each of the first six seconds. Then one pauses.
    println!("\nsecond  {:<28}  stubborn", "patient");
    let (mut of_patient, mut of_stubborn) = (Vec::new(), Vec::new());
    for second in 0..18 {
        clock.set(Timestamp::EPOCH.saturating_add(Micros::from_secs(second)));
        let pauses = (6..15).contains(&second);
        let (passed, patient_line) = hits(patient, if pauses { 0 } else { 1000 });
        let (passed_too, stubborn_line) = hits(stubborn, 1000);
        println!("{second:>6}  {:<28}  {stubborn_line}", if pauses { "-" } else { &patient_line });
        of_patient.push(passed);
        of_stubborn.push(passed_too);
    }

    assert_eq!((&of_patient[..5], &of_stubborn[..5]), (&[1000; 5][..], &[1000; 5][..]));
    assert_eq!((of_patient[5], of_stubborn[5]), (0, 0), "the sixth second is one too many");
    assert_eq!((&of_patient[15..], &of_stubborn[6..]), (&[1000; 3][..], &[0; 12][..]));
    assert_eq!(limiter.stats().keys, 2, "an entry for each IP, not for each second");
    Ok(())
}

//! Every row of `rows/`, on the memory store.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate_conformance::rows::{Report, Rows, files, read, run};
use tollgate_store::{ManualClock, MemoryStore};

fn run_in_memory(rows: &Rows) -> Report {
    let clock = ManualClock::default();
    let fresh = || MemoryStore::builder().clock(clock.clone()).build();
    let running = pin!(run(rows, fresh, |time| clock.set(time)));
    match running.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => report,
        Poll::Pending => panic!("the memory store answers at once"),
    }
}

/// Each file's plan says how many rows it has, and `Rows::parse` holds it to that, so no row is
/// lost unseen.
#[test]
fn every_row_holds_in_memory() {
    let mut failed = String::new();
    let mut total = 0;
    for name in files().unwrap() {
        let rows = read(&name).unwrap_or_else(|error| panic!("{error}"));
        let report = run_in_memory(&rows);
        assert_eq!(report.rows, rows.count(), "{}", rows.file());
        println!("{:4} rows, {:5} requests  {}", report.rows, report.requests, rows.file());
        total += report.rows;
        for failure in &report.failures {
            failed += &format!("{failure}\n");
        }
    }
    println!("{total} rows");
    assert!(failed.is_empty(), "\n{failed}");
}

/// A file that went missing would otherwise take its rows along in silence.
#[test]
fn every_file_is_there() {
    assert_eq!(files().unwrap(), FILES);
}

const FILES: [&str; 47] = [
    "changes/clock-steps.rows",
    "changes/counts.rows",
    "changes/two-forms.rows",
    "limits/coarse-tick.rows",
    "limits/concurrent.rows",
    "limits/fixed.rows",
    "limits/from-first.rows",
    "limits/log.rows",
    "limits/queue.rows",
    "limits/sliding-by.rows",
    "limits/sliding.rows",
    "limits/token-bucket.rows",
    "operations/block.rows",
    "operations/cancel.rows",
    "operations/count-denied.rows",
    "operations/leases.rows",
    "operations/peek.rows",
    "operations/penalize.rows",
    "operations/refund.rows",
    "operations/reserve.rows",
    "operations/reset.rows",
    "operations/take.rows",
    "patterns/01-single-counter.rows",
    "patterns/03-sliding-over-seconds.rows",
    "patterns/04-several-limits-several-identifiers.rows",
    "patterns/05-two-passes.rows",
    "patterns/06-reservoir.rows",
    "patterns/07-five-a-minute.rows",
    "patterns/08-rolling-minute-list.rows",
    "patterns/09-rolling-minute-sorted-set.rows",
    "patterns/10-uses.rows",
    "patterns/11-weighted-windows.rows",
    "patterns/12-token-bucket.rows",
    "patterns/13-leaky-bucket-queue.rows",
    "sources/bucket4j.rows",
    "sources/limits.rows",
    "sources/pitfalls.rows",
    "sources/redis-cell.rows",
    "sources/redis-rate.rows",
    "sources/throttlecrab.rows",
    "sources/throttled.rows",
    "together/binding.rows",
    "together/checks.rows",
    "together/errors.rows",
    "together/limits.rows",
    "together/request-ids.rows",
    "together/shadow.rows",
];

//! Every row of `rows/`, on the memory store.

use tollgate_conformance::rows::{files, run_all};
use tollgate_conformance::system::ready;
use tollgate_state::{ManualClock, MemoryStore};

#[test]
fn every_row_holds_in_memory() {
    let clock = ManualClock::default();
    let fresh = || MemoryStore::builder().clock(clock.clone()).build();
    let report = ready(run_all(fresh, |time| clock.set(time))).unwrap();
    println!("{report}");
    assert!(report.failures.is_empty(), "\n{report}");
    assert!(report.rows > 1_900);
}

/// The rows of a missing file would not run.
#[test]
fn no_file_is_missing() {
    assert_eq!(files().unwrap(), FILES);
}

const FILES: [&str; 50] = [
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
    "operations/backfill.rows",
    "operations/ban.rows",
    "operations/block.rows",
    "operations/cancel.rows",
    "operations/count-denied.rows",
    "operations/leases.rows",
    "operations/peek.rows",
    "operations/penalize.rows",
    "operations/refund.rows",
    "operations/reserve.rows",
    "operations/reset.rows",
    "operations/settle.rows",
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

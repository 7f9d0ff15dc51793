//! Checks of a known key in memory do not allocate.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tollgate::{Cost, MemoryLimiter, Policy};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LIMITS: [&str; 7] = [
    "1000/h",
    "1000/h queue 999",
    "1000/h fixed",
    "1000/h fixed from-first",
    "1000/h sliding",
    "1000/h fixed count-denied",
    "1000/h; 1000/d fixed; 1000/w sliding",
];

/// One test, so that no other thread allocates while it counts.
#[test]
fn admitted_and_denied_checks_of_a_known_key_allocate_nothing() {
    for limits in LIMITS {
        let limiter = MemoryLimiter::new();
        let policy = Policy::named("api", limits).unwrap();
        // The key becomes known.
        assert!(limiter.check(&policy, "user:42").allowed);
        let region = Region::new(ALLOCATOR);
        for _ in 0..100 {
            assert!(limiter.check(&policy, "user:42").allowed, "{limits}");
        }
        for _ in 0..100 {
            let decision = limiter.check_cost(&policy, "user:42", Cost::from(950));
            assert!(!decision.allowed && !decision.never, "{limits}: {decision:?}");
        }
        let stats = region.change();
        assert_eq!((stats.allocations, stats.reallocations), (0, 0), "{limits}");
    }
}

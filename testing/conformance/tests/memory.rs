//! Every property, on the memory store and on the model itself.
//!
//! The same seeds run every time. `TOLLGATE_CASES=100000` runs that many cases of each.

use tollgate_conformance::properties::{self, Plan, assert_holds};
use tollgate_conformance::system::{MemorySystem, ModelSystem};

/// Runs each property on the memory store, on its fast path, and on the model.
macro_rules! properties {
    ($($name:ident: $cases:literal cases $(, covers $($count:literal)+)?;)*) => {$(
        mod $name {
            use super::*;

            const COUNTS: &[&str] = &[$($($count),+)?];

            #[test]
            fn memory() {
                let plan = Plan::new($cases, 1);
                let mut system = MemorySystem::new();
                assert_holds(plan, COUNTS, properties::$name(&mut system, plan));
            }

            #[test]
            fn memory_fast_path() {
                let plan = Plan::new($cases, 2);
                let mut system = MemorySystem::fast_path();
                assert_holds(plan, COUNTS, properties::$name(&mut system, plan));
            }

            #[test]
            fn model() {
                let plan = Plan::new($cases, 3);
                let mut system = ModelSystem::default();
                assert_holds(plan, COUNTS, properties::$name(&mut system, plan));
            }
        }
    )*};
}

properties! {
    equals_model: 1500 cases, covers
        "check" "peek" "take" "reserve" "cancel" "refund" "penalize" "backfill" "reset" "block"
        "unblock" "acquire" "renew" "release";
    equals_model_with_clock_steps: 1000 cases, covers
        "undefined" "reserve" "cancel" "refund" "backfill" "acquire";
    equals_model_with_bans: 1500 cases, covers
        "banned" "check" "peek" "take" "reserve" "acquire" "reset" "unblock" "settle" "undefined";
    equals_model_in_batches: 200 cases, covers "batches";
    equals_model_through_policy_changes: 1000 cases, covers
        "reserve" "refund" "backfill" "acquire";
    equals_model_with_settlements: 1500 cases, covers "settle" "undefined";
    admissions_stay_within_bound: 400 cases;
    predictions_are_exact: 400 cases, covers "retries" "nevers" "remaining" "resets";
    denials_leave_no_trace: 400 cases;
    peeks_leave_no_trace: 400 cases;
    keys_are_independent: 400 cases;
    order_changes_nothing: 400 cases;
    answers_are_consistent: 400 cases;
    settling_equals_checking: 400 cases, covers "used" "recovered";
    settling_gives_back_no_more: 400 cases;
    refund_undoes_a_check: 400 cases, covers "refunds";
    refund_keeps_within_capacity: 400 cases, covers "refunded" "nothing";
    less_used_admits_more: 400 cases;
    higher_limit_admits_more: 400 cases;
    shifted_time_changes_nothing: 400 cases;
    scaled_units_change_nothing: 400 cases;
    clock_steps_do_not_lock_keys: 400 cases;
    clock_step_admits_one_more_capacity: 400 cases, covers "plausible" "implausible";
    repeats_charge_once: 400 cases, covers "repeats";
    request_ids_expire_at_horizon: 400 cases, covers "before" "after";
    two_versions_admit_at_most_the_larger: 400 cases;
    changed_policy_applies_at_once: 400 cases;
    leases_match_ledger: 400 cases, covers "changed";
    reservations_match_ledger: 400 cases, covers "cancelled" "gone";
}

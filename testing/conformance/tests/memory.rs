//! Every property, on the memory store and on the model itself.
//!
//! The same seeds run every time. `TOLLGATE_CASES=100000` runs that many cases of each.
#![allow(clippy::panic, clippy::print_stdout, reason = "a test")]

use tollgate_conformance::properties::{self, Coverage, Plan, Violation};
use tollgate_conformance::system::{MemorySystem, ModelSystem};

fn plan(cases: u32, seed: u8) -> Plan {
    let asked = std::env::var("TOLLGATE_CASES").ok();
    let asked = asked.and_then(|x| x.parse().ok());
    Plan { cases: asked.unwrap_or(cases), seed }
}

/// Holds that a property held, and that it saw enough to have shown something.
fn check(plan: Plan, counts: &[&str], outcome: Result<Coverage, Violation>) {
    let seen = outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{seen:?}");
    assert_eq!(seen.cases, u64::from(plan.cases), "all cases ran");
    assert!(seen.admitted > 0 && seen.denied > 0, "{seen:?}");
    for name in counts {
        assert!(seen.counted(name) > 0, "no {name}: {seen:?}");
    }
}

/// Runs each property on the memory store's two ways in, and on the model.
macro_rules! properties {
    ($($name:ident: $cases:literal cases $(, sees $($count:literal)+)?;)*) => {$(
        mod $name {
            use super::*;

            const COUNTS: &[&str] = &[$($($count),+)?];

            #[test]
            fn memory() {
                let plan = plan($cases, 1);
                let mut system = MemorySystem::new();
                check(plan, COUNTS, properties::$name(&mut system, plan));
            }

            #[test]
            fn memory_straight() {
                let plan = plan($cases, 2);
                let mut system = MemorySystem::fast_path();
                check(plan, COUNTS, properties::$name(&mut system, plan));
            }

            #[test]
            fn model() {
                let plan = plan($cases, 3);
                check(plan, COUNTS, properties::$name(&mut ModelSystem::default(), plan));
            }
        }
    )*};
}

properties! {
    equals_model: 1500 cases, sees
        "check" "peek" "take" "reserve" "cancel" "refund" "penalize" "reset" "block" "unblock"
        "acquire" "renew" "release";
    equals_model_with_a_clock_that_steps: 1000 cases, sees
        "unsure" "reserve" "cancel" "refund" "acquire";
    equals_model_in_batches: 200 cases, sees "batches";
    equals_model_through_changes: 1000 cases, sees "reserve" "refund" "acquire";
    keeps_its_bound: 400 cases;
    tells_the_future: 400 cases, sees "retries" "nevers" "remaining" "resets";
    denials_leave_no_trace: 400 cases;
    peeks_leave_no_trace: 400 cases;
    keys_are_alone: 400 cases;
    order_changes_nothing: 400 cases;
    answers_agree_with_themselves: 400 cases;
    refund_undoes_a_check: 400 cases, sees "refunds";
    refund_keeps_within_capacity: 400 cases, sees "given back" "nothing";
    less_used_admits_more: 400 cases;
    higher_limit_admits_more: 400 cases;
    another_time_changes_nothing: 400 cases;
    other_units_change_nothing: 400 cases;
    steps_do_not_lock_out: 400 cases;
    a_step_costs_one_limit: 400 cases, sees "plausible" "implausible";
    repeats_charge_once: 400 cases, sees "repeats";
    ids_last_their_horizon: 400 cases, sees "before" "after";
    two_forms_admit_the_larger: 400 cases;
    a_change_holds_from_then_on: 400 cases;
    leases_hold_their_places: 400 cases, sees "changed";
    reservations_are_kept: 400 cases, sees "cancelled" "gone";
}

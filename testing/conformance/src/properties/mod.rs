//! Properties of every store on random traces. Each property is a function over a
//! [`SystemUnderTest`](crate::system::SystemUnderTest).
//!
//! A plan states the number of cases and the seed. A property returns the coverage of its cases, or
//! the smallest case that violates it. [`assert_holds`] also asserts that the coverage is
//! sufficient: a property without any denial would prove nothing.

mod bound;
mod change;
mod clock;
mod erase;
mod ledger;
mod model;
mod monotone;
mod order;
mod play;
mod player;
mod probe;
mod refund;
mod request_ids;
mod runner;
mod settle;
mod strategies;
mod trace;

pub use bound::admissions_stay_within_bound;
pub use change::{changed_policy_applies_at_once, two_versions_admit_at_most_the_larger};
pub use clock::{clock_step_admits_one_more_capacity, clock_steps_do_not_lock_keys};
pub use erase::{denials_leave_no_trace, keys_are_independent, peeks_leave_no_trace};
pub use ledger::{leases_match_ledger, reservations_match_ledger};
pub use model::{
    equals_model, equals_model_in_batches, equals_model_through_policy_changes,
    equals_model_with_bans, equals_model_with_clock_steps, equals_model_with_settlements,
};
pub use monotone::{
    higher_limit_admits_more, less_used_admits_more, scaled_units_change_nothing,
    shifted_time_changes_nothing,
};
pub use order::{answers_are_consistent, order_changes_nothing};
pub use probe::predictions_are_exact;
pub use refund::{refund_keeps_within_capacity, refund_undoes_a_check};
pub use request_ids::{repeats_charge_once, request_ids_expire_at_horizon};
pub use runner::{Coverage, Outcome, Plan, Violation, assert_holds};
pub use settle::{settling_equals_checking, settling_gives_back_no_more};

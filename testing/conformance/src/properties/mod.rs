//! Properties of every store on random traces. Each property is a function over a
//! [`SystemUnderTest`](crate::system::SystemUnderTest).
//!
//! A plan states the number of cases and the seed. A property returns the coverage of its cases, and
//! its caller asserts that it is sufficient: a property without any denial would prove nothing.

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
mod strategies;
mod trace;

pub use bound::keeps_its_bound;
pub use change::{a_change_holds_from_then_on, two_forms_admit_the_larger};
pub use clock::{a_step_costs_one_limit, steps_do_not_lock_out};
pub use erase::{denials_leave_no_trace, keys_are_alone, peeks_leave_no_trace};
pub use ledger::{leases_hold_their_places, reservations_are_kept};
pub use model::{
    equals_model, equals_model_in_batches, equals_model_through_changes,
    equals_model_with_a_clock_that_steps,
};
pub use monotone::{
    another_time_changes_nothing, higher_limit_admits_more, less_used_admits_more,
    other_units_change_nothing,
};
pub use order::{answers_agree_with_themselves, order_changes_nothing};
pub use probe::tells_the_future;
pub use refund::{refund_keeps_within_capacity, refund_undoes_a_check};
pub use request_ids::{ids_last_their_horizon, repeats_charge_once};
pub use runner::{Coverage, Plan, Violation};

//! Decisions: a request's checks against the states of their keys.

mod ban;
mod check;
mod context;
mod evaluate;
mod fallback;
mod fast_path;
mod inspect;
mod operations;
mod settle;

pub use check::{decide, decide_one};
pub use context::CheckContext;
pub use fallback::fall_back;
pub use fast_path::{admits_plain, check_plain, check_single_limit};
pub use inspect::{
    BanInspection, HeldQuota, Inspection, LeaseInspection, LimitInspection, MAX_INSPECTED_LEASES,
    ReservationInspection, inspect,
};
pub use settle::{RecordedCharge, settle, split_settled};

//! The core of Tollgate: limits, their notation, and decisions.
//!
//! The crate is pure: decisions are functions of state and time. It has no clock, no locks, no
//! floating-point arithmetic and no dependencies. Stores provide the state, the time and the
//! atomicity.
//!
//! # Example
//! ```
//! use tollgate_algorithms::{Anomalies, CheckContext, KeyState, Operation, Policy, Timestamp, decide};
//!
//! let policy: Policy = "2/s".parse()?;
//! let (mut state, mut block, mut anomalies) = (KeyState::default(), None, Anomalies::default());
//! let now = Timestamp::from_micros(1_763_650_000_000_000);
//! let mut check = || {
//!     let context =
//!         CheckContext { policy: &policy, state: &mut state, block: &mut block, cost: 1 };
//!     decide(&Operation::Check { lease: None }, &mut [context], now, &mut anomalies).remove(0)
//! };
//! assert!(check().allowed && check().allowed);
//! let denied = check();
//! assert_eq!(denied.retry_after.map(|retry| retry.get()), Some(500_000));
//! # Ok::<(), tollgate_algorithms::NotationError>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod algorithm;
pub mod codec;
mod decide;
mod decision;
mod error;
mod id;
mod key;
mod limit;
mod notation;
mod outcome;
mod policy;
mod request;
#[cfg(feature = "serde")]
mod serialize;
mod time;

pub use algorithm::{Anomalies, LimitState, LogCoverage, Parameters};
pub use decide::{
    BanInspection, CheckContext, HeldQuota, Inspection, LeaseInspection, LimitInspection,
    MAX_INSPECTED_LEASES, RecordedCharge, ReservationInspection, admits_plain, check_plain,
    check_single_limit, decide, decide_one, fall_back, inspect, settle, split_settled,
};
pub use decision::{Decision, LimitDecision, Reason, Source};
pub use error::{LimitError, PolicyError, RequestError};
pub use id::{Id, IdError};
pub use key::{Block, KeyState, Retention};
pub use limit::{Kind, Limit, Spec};
pub use notation::{NotationError, parse_duration, parse_limits};
pub use outcome::{Denied, Outcome};
pub use policy::{
    Ban, BanError, HoldError, KeyList, LOG_ENTRIES, Listed, MAX_LIMITS, MIN_LEASE, OnStoreError,
    Policy, PolicyIdentity,
};
pub use request::{
    Check, Cost, CostError, MAX_CHECKS, MAX_KEY_LEN, MAX_REQUEST_ID_LEN, Operation, Request,
};
pub use time::{Micros, Timestamp};

/// The parts of a key's state, for stores that keep it in a format of their own.
pub mod state {
    pub use crate::algorithm::{
        FixedWindowState, Lease, LeaseSet, LogEntry, MAX_LEASES, SlidingLogState,
        SlidingWindowState, TokenBucketState,
    };
    pub use crate::key::{DetachedState, Reservation};
    pub use crate::policy::BanState;
}

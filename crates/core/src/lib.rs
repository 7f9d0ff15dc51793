//! The arithmetic of Tollgate: limits, their notation, and decisions about them.
//!
//! Pure: state and time in, state and answer out. No clock, no lock, no float, no dependency;
//! stores bring the state, the time and the atomicity.
//!
//! # Example
//! ```
//! use tollgate_core::{Effects, KeyState, Policy, Slot, Timestamp, Operation, decide};
//!
//! let policy: Policy = "2/s".parse()?;
//! let (mut state, mut block, mut seen) = (KeyState::default(), None, Effects::default());
//! let now = Timestamp::from_micros(1_763_650_000_000_000);
//! let mut check = || {
//!     let slot = Slot { policy: &policy, state: &mut state, block: &mut block, cost: 1 };
//!     decide(&Operation::Check { lease: None }, &mut [slot], now, &mut seen).remove(0)
//! };
//! assert!(check().allowed() && check().allowed());
//! let denied = check();
//! assert_eq!(denied.retry_after().map(|it| it.get()), Some(500_000));
//! # Ok::<(), tollgate_core::NotationError>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod codec;
mod decide;
mod decision;
mod describe;
mod error;
mod exact;
mod fallback;
mod fit;
mod forms;
mod inspect;
mod key_list;
mod key_state;
mod leases;
mod limit;
mod log;
mod meter;
mod notation;
mod policy;
mod replay;
mod request;
mod single;
mod state;
mod time;
mod verbs;
mod weighted;
mod window;

pub use decide::{Block, Slot, decide, decide_one};
pub use decision::{Decision, LimitDecision, Reason, Source};
pub use error::{LimitError, PolicyError, RequestError};
pub use fallback::{OnStoreError, fall_back};
pub use inspect::{Inspection, LeaseInspection, LimitInspection, ReservationInspection, inspect};
pub use key_list::{KeyList, Listed};
pub use key_state::KeyState;
pub use limit::{Kind, Limit, Spec};
pub use notation::{NotationError, NotationErrorKind, parse_duration, parse_limits};
pub use policy::{LOG_ENTRIES, MAX_LIMITS, Policy};
pub use request::{
    Check, Cost, Id, IdError, MAX_CHECKS, MAX_KEY_LEN, MAX_REQUEST_ID_LEN, Operation, Request,
};
pub use single::check_plain;
pub use state::Effects;
pub use time::{Micros, Timestamp};

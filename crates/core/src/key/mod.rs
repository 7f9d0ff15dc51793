//! The state of a key, and its migration when the policy changes.

mod migration;
mod state;

pub(crate) use migration::MAX_DETACHED_STATES;
pub(crate) use state::MAX_RESERVATIONS;
pub use state::{Block, DetachedState, KeyState, Reservation};

//! Connections: their number, and the timeouts of slow and idle clients.

mod idle;
mod limiter;

pub use self::idle::{BusyGuard, IdleStatus, IdleTracker, TrackedStream};
pub use self::limiter::{ConnectionLimiter, ConnectionPermit};

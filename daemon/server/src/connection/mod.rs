//! Connections: their number, and the timeouts of slow and idle clients.

mod idle;
mod limiter;

pub(crate) use self::idle::{BusyGuard, IdleStatus, IdleTracker, TrackedStream};
pub(crate) use self::limiter::{ConnectionLimiter, ConnectionPermit};

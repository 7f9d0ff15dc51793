//! Sockets, TLS and connections, which every protocol of the daemon uses.
//!
//! A [`Listener`] accepts [`Stream`]s, a [`ConnectionLimiter`] bounds their number, an
//! [`IdleTracker`] enforces the timeouts of slow and idle clients, and the [`Lifecycle`] tells
//! connections when the daemon drains and closes.

mod idle;
mod lifecycle;
mod limiter;
mod listener;

pub use idle::{BusyGuard, IdleStatus, IdleTracker, TrackedStream};
pub use lifecycle::Lifecycle;
pub use limiter::{ConnectionLimiter, ConnectionPermit};
pub use listener::{
    Accepted, ListenAddress, ListenError, Listener, Listeners, Socket, Stream, Tls,
};

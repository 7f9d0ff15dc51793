//! Sockets, TLS and connections, which every protocol of the daemon uses.
//!
//! A [`Listener`] accepts [`Stream`]s, a [`ConnectionLimiter`] bounds their number, an
//! [`IdleTracker`] enforces the timeouts of slow and idle clients, a [`BufferBudget`] bounds the
//! buffers of all connections, and the [`Lifecycle`] tells
//! connections when the daemon drains and closes.

mod buffers;
mod idle;
mod lifecycle;
mod limiter;
mod linger;
mod listener;
mod unsent;

pub use buffers::{BufferBudget, BufferLease};
pub use idle::{BusyGuard, IdleStatus, IdleTracker, TrackedStream, WatchGuard};
pub use lifecycle::Lifecycle;
pub use limiter::{ConnectionLimiter, ConnectionLimits, ConnectionPermit};
pub use listener::{
    Accepted, ListenAddress, ListenError, Listener, Listeners, Socket, Stream, Tls,
};
pub use unsent::Unsent;

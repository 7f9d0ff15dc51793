//! Sockets, TLS and connections, which every protocol of the daemon uses.
//!
//! A [`Listener`] accepts [`Stream`]s, a [`ConnectionLimiter`] bounds their number, an [`IdleTracker`]
//! enforces the timeouts of slow and idle clients, and the [`Lifecycle`] tells connections when the
//! daemon drains and closes.

mod connection;
mod lifecycle;
mod listener;

pub use connection::{
    BusyGuard, ConnectionLimiter, ConnectionPermit, IdleStatus, IdleTracker, TrackedStream,
};
pub use lifecycle::Lifecycle;
pub use listener::{
    Accepted, ListenAddress, ListenError, Listener, Listeners, Socket, Stream, Tls, TlsError,
};

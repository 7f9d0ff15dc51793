//! The Redis protocol, RESP2 and RESP3.
//!
//! - `frames.rs` and `inline.rs` parse commands; `reply_buffer.rs` encodes replies.
//! - `conversation.rs` is a connection without its socket; `connection.rs` adds the socket.
//! - `commands/` contains the table of commands. Those of operations derive from the engine's
//!   table; `operation.rs` parses their arguments, and `decision.rs` writes their replies, most of
//!   them from the text of an earlier one, which `template.rs` keeps.
//! - Calls on the memory store are executed at once, but successive checks without keywords together
//!   (`deferred.rs`). Calls on another store wait in the `BatchContext` for the end of their batch, and
//!   are executed together.

mod command;
mod commands;
mod connection;
mod context;
mod conversation;
mod decision;
mod deferred;
mod failure;
mod frames;
mod inline;
mod operation;
mod pending;
mod reference;
mod replay;
mod reply_buffer;
mod template;
mod throttle_policies;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::connection::serve;
pub use self::reference::resp_reference;
pub use self::replay::RespReplay;
use self::throttle_policies::ThrottlePolicies;
use tollgate_transport::{BufferBudget, ConnectionLimiter};

/// The state that all connections share.
#[derive(Debug)]
pub struct RespState {
    throttle_policies: ThrottlePolicies,
    /// The id of the newest connection.
    last_id: AtomicU64,
    connections: Arc<ConnectionLimiter>,
    buffers: Arc<BufferBudget>,
}

impl RespState {
    /// The state of a listener with these connections, which share the buffers of the daemon.
    #[must_use]
    pub fn new(connections: Arc<ConnectionLimiter>, buffers: Arc<BufferBudget>) -> Self {
        RespState {
            throttle_policies: ThrottlePolicies::default(),
            last_id: AtomicU64::new(0),
            connections,
            buffers,
        }
    }

    fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }
}

//! RESP: any client of Redis.
//!
//! - `frames.rs` and `inline.rs` find commands in bytes; `out.rs` writes replies.
//! - `session.rs` is a connection without its socket; `connection.rs` is the socket.
//! - `commands/` has a file for each command, and `table.rs` what they have in common.
//! - `verb.rs` and `given.rs` are the way of our own verbs; `decision.rs` is what they answer.
//! - What is asked of memory is answered at once. What is asked of another store is a
//!   `question.rs`, and a batch of them is asked together, in `settle.rs`.

mod asking;
mod commands;
mod connection;
mod decision;
mod failure;
mod frames;
mod given;
mod inline;
mod number;
mod out;
mod question;
mod reference;
mod replay;
mod session;
mod settle;
mod table;
mod throttles;
mod transaction;
mod verb;
mod word;

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Micros, Timestamp};

pub(crate) use self::connection::serve;
pub use self::reference::resp_reference;
pub use self::replay::RespReplay;
use self::throttles::Throttles;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    throttles: Throttles,
    /// Of the newest connection.
    id: AtomicU64,
    started: Timestamp,
}

impl Shared {
    pub(crate) fn new(started: Timestamp) -> Self {
        Shared { throttles: Throttles::default(), id: AtomicU64::new(0), started }
    }

    /// Names a connection.
    fn next_id(&self) -> u64 {
        self.id.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn uptime(&self, now: Timestamp) -> Micros {
        now.duration_since(self.started)
    }
}

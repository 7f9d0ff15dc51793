//! What became of those who brought no token that is known.

use std::sync::{Mutex, PoisonError};

use tollgate::{Micros, Timestamp};

/// How often a line is logged about them: whoever guesses tokens must not fill the disk.
const SAY_EVERY: Micros = Micros::from_secs(10);

/// Requests that brought no token that is known: how many, told in the log now and then.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    /// How many of them no line has told.
    untold: u64,
    /// When the next line may be.
    next: Timestamp,
}

impl Failures {
    /// Counts one, from `peer` at `now`; never is any part of what it brought logged.
    pub(crate) fn add(&self, now: Timestamp, peer: impl std::fmt::Display) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all = counts.all.saturating_add(1);
        counts.untold = counts.untold.saturating_add(1);
        if now >= counts.next {
            tracing::warn!(%peer, requests = counts.untold, all = counts.all, "no known token");
            counts.untold = 0;
            counts.next = now.after(SAY_EVERY);
        }
    }
}

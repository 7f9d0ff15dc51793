//! What a save and a restore have to say.

use std::path::PathBuf;

use tollgate_core::{Micros, Timestamp};

use super::error::InvalidSnapshot;

/// What was saved, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveReport {
    /// Keys written.
    pub keys: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Bytes written.
    pub bytes: u64,
    /// How long it took, by the machine's clock.
    pub took: Micros,
    /// How often a lock was held to copy something out.
    pub locks: u64,
    /// The longest that one was held, by the machine's clock; a thread that was not running
    /// meanwhile is counted in.
    pub longest_lock: Micros,
    /// The most keys or blocks copied under one hold.
    pub most_per_lock: u64,
    /// The most bytes copied under one hold.
    pub most_bytes_per_lock: u64,
}

/// What a store was given of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// When the snapshot was begun, by the clock of the store that wrote it; absent if there was
    /// none.
    pub taken: Option<Timestamp>,
    /// Keys the store now holds.
    pub keys: u64,
    /// Blocks the store now holds.
    pub blocks: u64,
    /// Keys and blocks left out because their time has passed.
    pub recovered: u64,
    /// Live keys left out because `max_keys` is less than it was.
    pub no_room: u64,
    /// The snapshot that was not taken. The store then began empty.
    pub quarantined: Option<QuarantinedSnapshot>,
}

/// A snapshot that is no good, out of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantinedSnapshot {
    /// Where it is now.
    pub path: PathBuf,
    /// Why it is there.
    pub reason: InvalidSnapshot,
}

//! Reports of saving and restoring.

use std::path::PathBuf;

use tollgate_algorithms::{Micros, Timestamp};

use super::error::InvalidSnapshot;

/// The result of writing a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveReport {
    /// Keys written.
    pub keys: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Bytes written.
    pub bytes: u64,
    /// How long the save took.
    pub took: Micros,
    /// How often a shard was locked.
    pub locks: u64,
    /// The longest time that a lock was held, including time when the thread was not scheduled.
    pub longest_lock: Micros,
    /// The maximum number of keys or blocks copied under one lock.
    pub most_per_lock: u64,
    /// The maximum number of bytes copied under one lock.
    pub most_bytes_per_lock: u64,
}

/// The result of restoring a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// When the snapshot was started, by the clock of the store that wrote it; `None` if there was
    /// no snapshot.
    pub taken: Option<Timestamp>,
    /// Keys in the restored store.
    pub keys: u64,
    /// Blocks in the restored store.
    pub blocks: u64,
    /// Keys and blocks that were skipped because they have expired since.
    pub recovered: u64,
    /// Live keys that were dropped because `max_keys` is smaller than it was.
    pub no_room: u64,
    /// The snapshot that was invalid; the store then starts empty.
    pub quarantined: Option<QuarantinedSnapshot>,
}

/// An invalid snapshot that was renamed, so that it is kept for inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantinedSnapshot {
    /// The new path of the file.
    pub path: PathBuf,
    /// Why the snapshot is invalid.
    pub reason: InvalidSnapshot,
}

//! Stores of rate limit state: the [`Store`] trait, keys, clocks, and the in-memory store.

mod as_key;
mod clock;
mod failure;
mod key;
mod memory;
mod open_error;
mod snapshot;
mod store;
mod sync;

pub use as_key::{AsKey, KeyBuffer};
pub use clock::{Clock, ManualClock, SystemClock, monotonic_micros, wall_micros};
pub use failure::{Failure, FailureKind};
pub use key::{Key, KeyBuf};
pub use memory::{
    MAX_BYTES, MAX_KEYS, MemoryStats, MemoryStore, MemoryStoreBuilder, REQUEST_ID_HORIZON,
    TableFull,
};
pub use open_error::OpenError;
pub use snapshot::{
    InvalidSnapshot, QuarantinedSnapshot, RestoreReport, SaveReport, SnapshotDir, SnapshotError,
};
pub use store::{Answer, Store, StoreError};

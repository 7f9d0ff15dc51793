//! Where Tollgate's state lives: the contract that stores keep, keys, the clock, and the memory
//! store.

mod clock;
mod failure;
mod key;
mod memory;
mod snapshot;
mod store;
mod sync;

pub use clock::{Clock, ManualClock, SystemClock};
pub use failure::{Failure, FailureKind};
pub use key::{Key, KeyBuf};
pub use memory::{
    MAX_KEYS, MemoryStats, MemoryStore, MemoryStoreBuilder, Occupancy, REQUEST_ID_HORIZON,
    TableFull,
};
pub use snapshot::{Rejected, Restored, SaveReport, SetAside, SnapshotDir, SnapshotError};
pub use store::{Answer, Store, StoreError};

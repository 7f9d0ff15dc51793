//! Rate limiting with identical, exact decisions in memory, in a daemon and on Redis or Valkey.
//!
//! ```
//! use tollgate::{Key, MemoryLimiter, Policy};
//!
//! let limiter = MemoryLimiter::new();
//! let api: Policy = "10/s burst 20; 1000/h sliding by 1m".parse()?;
//! let decision = limiter.check(&api, Key::new("user:42")?);
//! assert!(decision.allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`MemoryLimiter`] keeps its state in this process: a check is synchronous and cannot fail.
//! - [`Limiter`] is asynchronous and runs on memory or, with the feature `redis`, on Redis and Valkey.
//! - [`Policies`] holds named policies; [`Overrides`] and [`Tiers`] give some keys other limits.
//! - [`Limit`] describes the notation of limits, [`Decision`] the result of a check, and
//!   [`Operation`] all operations.

#[cfg(feature = "tokio")]
mod guard;
mod id;
mod limiter;
mod lists;
mod memory;
mod overrides;
mod policies;
mod tiers;

#[cfg(feature = "tokio")]
#[doc(hidden)]
pub use guard::task;
#[cfg(feature = "tokio")]
pub use guard::{AcquireError, Charge, Permit};
pub use id::random_id;
#[cfg(feature = "redis")]
pub use limiter::LimiterBuilder;
pub use limiter::{Limiter, LimiterStats, OpenError, masked_url};
pub use memory::{MemoryLimiter, MemoryLimiterBuilder};
pub use overrides::{
    KeyPattern, KeyPatternKind, MAX_OVERRIDES, OverrideError, Overrides, OverridesBuilder,
    PatternError,
};
pub use policies::{DefineError, Policies, ResolveError, UnknownPolicy, UnknownTier, UnusedLimit};
pub use tiers::{TierError, Tiers};
#[doc(inline)]
pub use tollgate_core::{
    Ban, BanError, BanInspection, Block, Check, Cost, CostError, Decision, Denied, Id, IdError,
    Inspection, KeyList, Kind, LeaseInspection, Limit, LimitDecision, LimitError, LimitInspection,
    Listed, MAX_KEY_LEN, Micros, NotationError, OnStoreError, Operation, Outcome, Policy,
    PolicyError, Reason, Request, RequestError, ReservationInspection, Source, Spec, Timestamp,
    parse_duration,
};
#[cfg(feature = "redis")]
#[doc(inline)]
pub use tollgate_redis::{
    BreakerState, BreakerStats, FlushError, NodeStats, OpenError as RedisOpenError, Pem,
    RedisOptions, RedisStats, RedisStore, ScriptTime, Warning,
};
#[doc(inline)]
pub use tollgate_store::{
    Answer, AsKey, Clock, Failure, FailureKind, InvalidSnapshot, Key, KeyBuf, KeyBuffer,
    ManualClock, MemoryStats, MemoryStore, MemoryStoreBuilder, QuarantinedSnapshot, RestoreReport,
    SaveReport, SnapshotDir, SnapshotError, Store, StoreError, TableFull,
};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles and runs the examples of the library page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;

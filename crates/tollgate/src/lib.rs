//! Rate limiting with identical, exact decisions in memory, in a daemon and on Redis or Valkey.
//!
//! ```
//! use tollgate::{MemoryLimiter, Outcome, Policy};
//!
//! let limiter = MemoryLimiter::new();
//! let api = Policy::named("api", "10/s burst 20; 1000/h sliding by 1m")?;
//! match limiter.check(&api, "user:42").outcome() {
//!     Outcome::Allowed { delay } => println!("admitted after {delay:?}"), // waits in queues only
//!     Outcome::Denied(denied) => println!("{denied}"),
//! }
//! # Ok::<(), tollgate::PolicyError>(())
//! ```
//!
//! The [`guide`] explains algorithms, keys, several limits, Redis and tests.
//!
//! | To | Use |
//! |---|---|
//! | decide in this process, synchronously | [`MemoryLimiter`] |
//! | share the state through Redis or Valkey, or choose the store later | [`Limiter`], with the feature `redis`, or for TLS `tls-rustls` |
//! | limit a service of axum, tonic, hyper or tower, or a client | the crate `tollgate-tower` |
//! | write limits | the notation, see [`Limit`]; or typed, [`Spec`] |
//! | name a policy | [`Policy::named`]; [`Policies`], with other limits for some keys: [`Overrides`], [`Tiers`] |
//! | name a client | [`AsKey`]: texts, bytes, numbers, addresses |
//! | read a decision | [`Decision::outcome`], [`Outcome`], [`Denied`] |
//! | wait, limit requests in flight, settle a cost | `Limiter::until_allowed`, `Permit`, `Charge`, with the feature `tokio` |
//! | decide several checks together | [`Limiter::check_all`], [`MemoryLimiter::check_all`] |
//! | limit without a key | one key for all, such as `"all"` |
//! | read policies from a configuration, log decisions | the features `serde` and `tracing` |
//! | test | [`ManualClock`], [`Clock::from_fn`] |
//! | bring a store | [`Store`], [`Limiter::with_store`] |
//! | do anything else | [`Operation`], [`Request`] |

#[cfg(feature = "tracing")]
mod events;
#[cfg(feature = "tokio")]
mod guard;
#[cfg(any(doc, doctest))]
pub mod guide;
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
pub use limiter::{Limiter, LimiterStats, masked_url};
pub use memory::{MemoryLimiter, MemoryLimiterBuilder};
pub use overrides::{
    KeyPattern, KeyPatternKind, MAX_OVERRIDES, OverrideError, Overrides, OverridesBuilder,
    PatternError,
};
pub use policies::{DefineError, Policies, ResolveError, UnknownPolicy, UnknownTier, UnusedLimit};
pub use tiers::{TierError, Tiers};
#[doc(inline)]
pub use tollgate_algorithms::{
    Ban, BanError, BanInspection, Block, Check, Cost, CostError, Decision, Denied, HeldQuota,
    HoldError, Id, IdError, Inspection, KeyList, Kind, LeaseInspection, Limit, LimitDecision,
    LimitError, LimitInspection, Listed, MAX_KEY_LEN, MIN_LEASE, Micros, NotationError,
    OnStoreError, Operation, Outcome, Policy, PolicyError, Reason, Request, RequestError,
    ReservationInspection, Source, Spec, Timestamp, parse_duration,
};
#[cfg(feature = "redis")]
#[doc(inline)]
pub use tollgate_redis::{
    BreakerState, BreakerStats, FlushError, NodeStats, Pem, RedisOptions, RedisStats, RedisStore,
    ScriptTime, Warning,
};
#[doc(inline)]
pub use tollgate_state::{
    Answer, AsKey, Clock, Failure, FailureKind, InvalidSnapshot, Key, KeyBuf, KeyBuffer,
    ManualClock, MemoryStats, MemoryStore, MemoryStoreBuilder, OpenError, QuarantinedSnapshot,
    RestoreReport, SaveReport, SnapshotDir, SnapshotError, Store, StoreError, TableFull,
};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles and runs the examples of the library page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;

/// Compiles and runs the example of the page on leases.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/leases.md")]
struct LeasesPage;

//! Encoding of state as bytes, for a store that keeps it outside its process.
//!
//! Integers are little-endian and of fixed width; a `count` or `length` has 32 bits.
//!
//! ```text
//! policy      name: text (empty if the limits are the name), limits: text
//! text        length, that many bytes of UTF-8
//! key state   form: u8 (1 if detached states or reservations follow, else 0), a limit for each of
//!             the policy's; of form 1 then a count of detached states, and one of reservations
//! limit       0: u8 (untouched), or 1: u8 and its state
//! detached    limit: text, rank: u8, state
//! reservation id: u128, cost: u64, acts at: u64, limits it was made under: text (empty if they are
//!             the policy's), for each of them a level
//! state       by the limit's kind: level; window; counts; log; or leases
//! level       at: u64, used: u64                        token bucket, queue
//! window      end: u64, used: u64                       fixed, fixed from-first
//! counts      start: u64, current: u64, previous: u64   sliding
//! log         count, of each stamp: u64, cost: u64      log, sliding by
//! leases      at: u64, count, of each id: u128, cost: u64, end: u64
//! ```
//!
//! The decoder does not trust its input. No count makes it allocate more than the remaining bytes,
//! and state that no charge can produce is rejected. Decoded state is encoded as the same bytes.

mod bytes;
mod policy;
mod state;

pub use bytes::{Bytes, Malformed, put_bytes, put_count};

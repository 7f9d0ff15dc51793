//! State as bytes and back, for a store that keeps it outside its process.
//!
//! Integers are little-endian and of fixed width; a `count` or `length` is 32 bits.
//!
//! ```text
//! policy      name: text (empty if it is named by its limits), limits: text
//! text        length, that many bytes of UTF-8
//! key state   form: u8 (1 if strays or reservations follow, else 0), a limit for each of the
//!             policy's; of form 1 then a count of strays, and a count of reservations
//! limit       0: u8 (untouched), or 1: u8 and its state
//! stray       limit: text, rank: u8, state
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
//! Reading trusts nothing: no count makes it allocate more than the bytes that are left, and state
//! that no charge can make is refused, so that what was read is decided as if it had been charged
//! here. What is read is written as the same bytes again.

mod bytes;
mod policy;
mod script;
mod state;

use core::fmt;

pub use bytes::{Bytes, put_bytes, put_count};
pub(crate) use script::Script;
pub use script::{Unreadable, number, put_number};

/// Bytes that are not what they are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// What is wrong with them.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}

/// Refuses what does not hold.
fn ensure(holds: bool, otherwise: &'static str) -> Result<(), Malformed> {
    if holds { Ok(()) } else { Err(Malformed(otherwise)) }
}

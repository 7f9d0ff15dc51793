//! Encoding of state as bytes, for a store that keeps it outside its process.
//!
//! Integers are little-endian and of fixed width; a `count` or `length` has 32 bits.
//!
//! ```text
//! policy      name: text (empty if the limits are the name), limits: text
//! text        length, that many bytes of UTF-8
//! key state   form: u8 (1 if detached states or reservations follow, 2 if a ban follows, their sum or
//!             0), a limit for each of the policy's, the ban, a count of detached states, and one of
//!             reservations
//! limit       0: u8 (untouched), or 1: u8 and its state
//! detached    limit: text, rank: u8, state
//! reservation id: u128, cost: u64, acts at: u64, limits it was made under: text (empty if they are
//!             the policy's), for each of them a level
//! state       by the limit's kind: level; window; counts; log; or leases
//! ban         end: u64, denials: u64 (0 if the key is banned)
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
mod state;

use alloc::string::ToString;
use alloc::vec::Vec;

use bytes::ensure;
pub use bytes::{Bytes, Malformed, put_bytes};

use crate::limit::Limit;
use crate::notation::parse_limits;
use crate::policy::Policy;

const NOT_A_POLICY: Malformed = Malformed("a policy is invalid");

impl Policy {
    /// Appends the name and the limits. The other settings do not affect state.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let name = if self.name().starts_with('=') { "" } else { self.name() };
        put_bytes(out, name.as_bytes());
        put_bytes(out, self.to_string().as_bytes());
    }

    /// Decodes the output of [`Policy::encode`].
    ///
    /// # Errors
    /// The bytes are not a policy, or not in its canonical form.
    pub fn decode(from: &mut Bytes<'_>) -> Result<Policy, Malformed> {
        let (name, limits) = (from.text()?, from.text()?);
        let policy: Policy = if name.is_empty() {
            limits.parse().map_err(|_| NOT_A_POLICY)?
        } else {
            let limits = parse_limits(limits).map_err(|_| NOT_A_POLICY)?;
            let policy = match name.starts_with('@') {
                true => Policy::reserved(name, limits),
                false => Policy::new(name, limits),
            };
            policy.map_err(|_| NOT_A_POLICY)?
        };
        ensure(policy.to_string() == limits, "limits are not in their canonical form")?;
        Ok(policy)
    }
}

fn put_limit(out: &mut Vec<u8>, limit: &Limit) {
    put_bytes(out, limit.to_string().as_bytes());
}

fn limit(from: &mut Bytes<'_>) -> Result<Limit, Malformed> {
    let text = from.text()?;
    let limit: Limit = text.parse().map_err(|_| Malformed("a limit is invalid"))?;
    ensure(limit.to_string() == text, "a limit is not in its canonical form")?;
    Ok(limit)
}

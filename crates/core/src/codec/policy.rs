//! Encoding of the policy that a state belongs to: its name and its limits as text.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::bytes::{Bytes, Malformed, ensure, put_bytes};
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

/// Appends a limit as its text.
pub(super) fn put_limit(out: &mut Vec<u8>, limit: &Limit) {
    put_bytes(out, limit.to_string().as_bytes());
}

/// Decodes a limit from its text.
pub(super) fn limit(from: &mut Bytes<'_>) -> Result<Limit, Malformed> {
    let text = from.text()?;
    let limit: Limit = text.parse().map_err(|_| Malformed("a limit is invalid"))?;
    ensure(limit.to_string() == text, "a limit is not in its canonical form")?;
    Ok(limit)
}

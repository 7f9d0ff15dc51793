//! What an override or a tier gives: limits, or none.

use tollgate_core::{KeyList, NotationError, Policy};

/// The word for no limit.
const UNLIMITED: &str = "unlimited";

/// What an override or a tier gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// The limits of this policy.
    Limits(Policy),
    /// Always admitted, and charged nothing.
    Unlimited,
}

impl Allowance {
    /// Reads limits, or `unlimited`.
    pub(crate) fn parse(text: &str) -> Result<Self, NotationError> {
        match text.trim() {
            UNLIMITED => Ok(Allowance::Unlimited),
            limits => limits.parse().map(Allowance::Limits),
        }
    }

    /// The same for equal limits, however they were written.
    pub(super) fn canonical(&self) -> &str {
        match self {
            Allowance::Limits(limits) => limits.name(),
            Allowance::Unlimited => UNLIMITED,
        }
    }

    /// The policy in the form that this gives it.
    pub(crate) fn form_of(&self, policy: &Policy) -> Policy {
        match self {
            Allowance::Limits(limits) => policy.with_limits_of(limits),
            // Its limits stay, for whoever looks at what the key used before; its deny list too.
            Allowance::Unlimited => policy.clone().with_allow_list(KeyList::from_iter(["*"])),
        }
    }
}

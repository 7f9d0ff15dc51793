//! The answer to a check, and what each limit of the policy said.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::key_list::Listed;
use crate::request::Id;
use crate::time::{Micros, Timestamp};

/// Why a check was decided as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The limits decided.
    #[default]
    Limit,
    /// The cost is above a limit's capacity: it never passes.
    Never,
    /// An operator blocked the key.
    Blocked,
    /// The key is on the policy's deny list.
    DenyList,
    /// The key is on the policy's allow list.
    AllowList,
    /// The store could not answer, and the policy says what that means.
    Store,
}

impl Reason {
    /// The word that stands for it on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Limit => "limit",
            Reason::Never => "never",
            Reason::Blocked => "blocked",
            Reason::DenyList => "deny_list",
            Reason::AllowList => "allow_list",
            Reason::Store => "store",
        }
    }
}

/// Who answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store itself.
    #[default]
    Store,
    /// A lease of quota held by this process.
    Lease,
    /// This process's memory of an earlier denial.
    DenyCache,
    /// What the policy puts in the store's place while that is away.
    Fallback,
}

impl Source {
    /// The word that stands for it on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Store => "store",
            Source::Lease => "lease",
            Source::DenyCache => "deny_cache",
            Source::Fallback => "fallback",
        }
    }
}

/// What one limit of a policy said. In a [`Decision`] they stand in the policy's canonical order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitDecision {
    /// Whether this limit alone admits.
    pub allowed: bool,
    /// Whether the cost is above its capacity.
    pub never: bool,
    /// Whether this is the limit that speaks for the policy.
    pub binding: bool,
    /// The most it can hold.
    pub capacity: u64,
    /// What could still be spent at once, after this decision.
    pub remaining: u64,
    /// When the same cost would pass this limit; absent if it passes, and for never.
    pub retry_after: Option<Micros>,
    /// Until no later decision of this limit can differ from an unknown key's.
    pub reset_after: Micros,
}

/// The answer to one check.
///
/// A denial is an answer, not an error: see [`Decision::allowed`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
    /// The cost is above the capacity: waiting does not help.
    pub never: bool,
    /// The capacity of the binding limit.
    pub capacity: u64,
    /// What could still be spent at once, after this decision: the least of the limits'.
    pub remaining: u64,
    /// With no other traffic the same cost is denied a microsecond before this and admitted at
    /// it. Absent if it was admitted, never will be, or is blocked for ever.
    pub retry_after: Option<Micros>,
    /// Until no later decision can differ from an unknown key's; absent if that is never.
    pub reset_after: Option<Micros>,
    /// How long to wait before acting, once admitted.
    pub delay: Micros,
    /// What was charged; for a refund or cancel, what was given back.
    pub granted: u64,
    /// Whether anything in the store changed.
    pub changed: bool,
    /// Who answered.
    pub source: Source,
    /// Whether a failure of the store decided.
    pub degraded: bool,
    /// Whether this is the remembered answer to an earlier request with the same id.
    pub replayed: bool,
    /// Whether the policy only records: its limits say what they would, the rest ignores it.
    pub shadow: bool,
    /// The store's time of the decision.
    pub time: Timestamp,
    /// The lease that was acquired, renewed or released.
    pub lease: Option<Id>,
    /// The reservation that was made or cancelled.
    pub reservation: Option<Id>,
    /// Which limit is binding, in the policy's canonical order.
    pub binding: usize,
    pub(crate) details: Details,
}

/// What each limit said, without an allocation for up to four of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Details {
    /// A single limit says what the decision says.
    #[default]
    Single,
    Few(u8, [LimitDecision; 4]),
    Many(Box<[LimitDecision]>),
}

impl Decision {
    /// A decision of which nothing is known but its time.
    #[inline]
    pub(crate) const fn blank(time: Timestamp) -> Decision {
        Decision {
            allowed: false,
            reason: Reason::Limit,
            never: false,
            capacity: 0,
            remaining: 0,
            retry_after: None,
            reset_after: None,
            delay: Micros::ZERO,
            granted: 0,
            changed: false,
            source: Source::Store,
            degraded: false,
            replayed: false,
            shadow: false,
            time,
            lease: None,
            reservation: None,
            binding: 0,
            details: Details::Single,
        }
    }

    /// What a list says, before any limit is asked.
    #[must_use]
    pub fn of_list(listed: Listed, time: Timestamp) -> Decision {
        let (allowed, reason) = match listed {
            Listed::Allow => (true, Reason::AllowList),
            Listed::Deny => (false, Reason::DenyList),
        };
        let details = Details::Few(0, Default::default());
        Decision { allowed, reason, time, details, ..Decision::default() }
    }

    /// What a store says where it has no state to ask the limits about.
    #[must_use]
    pub fn of_store(allowed: bool, retry_after: Option<Micros>, time: Timestamp) -> Decision {
        let details = Details::Few(0, Default::default());
        let retry_after = retry_after.filter(|_| !allowed);
        let reason = Reason::Store;
        Decision { allowed, reason, retry_after, time, details, ..Decision::default() }
    }

    /// Whether the request may go on.
    #[must_use]
    pub const fn allowed(&self) -> bool {
        self.allowed
    }

    /// When the same cost would be admitted, exactly; absent where there is no such time.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Micros> {
        self.retry_after
    }

    /// What each limit said, in the policy's canonical order.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitDecision> {
        self.each_limit().collect()
    }

    /// What each limit said, as in [`Decision::limits`], without an allocation.
    pub fn each_limit(&self) -> impl Iterator<Item = LimitDecision> + Clone + '_ {
        let (only, several) = match &self.details {
            Details::Single => (Some(self.only_limit()), &[][..]),
            Details::Few(len, all) => (None, &all[..usize::from(*len)]),
            Details::Many(all) => (None, &all[..]),
        };
        only.into_iter().chain(several.iter().copied())
    }

    /// Whether this admits for no other reason than that the policy only records: one of its
    /// limits would have denied.
    #[must_use]
    pub fn is_shadow_denial(&self) -> bool {
        self.shadow && self.each_limit().any(|each_limit| !each_limit.allowed)
    }

    pub(crate) fn only_limit(&self) -> LimitDecision {
        LimitDecision {
            allowed: self.allowed,
            never: self.never,
            binding: true,
            capacity: self.capacity,
            remaining: self.remaining,
            retry_after: self.retry_after,
            reset_after: self.reset_after.unwrap_or_default(),
        }
    }
}

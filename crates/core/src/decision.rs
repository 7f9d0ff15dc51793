//! The decision about a check, and the decisions of the limits of its policy.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::Id;
use crate::policy::Listed;
use crate::request::Cost;
use crate::time::{Micros, Timestamp};

/// The reason for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The limits decided.
    #[default]
    Limit,
    /// The cost exceeds a limit's capacity, so it is never admitted.
    Never,
    /// An operator blocked the key.
    Blocked,
    /// The key was denied too often, so its policy bans it for a time. The denial that begins a ban has
    /// the reason of the limits.
    Banned,
    /// The key is on the policy's deny list.
    DenyList,
    /// The key is on the policy's allow list.
    AllowList,
    /// The store was unavailable; the policy's `on_store_error` decided.
    Store,
}

impl Reason {
    /// The name. See also [`Decision::reason_name`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Limit => "limit",
            Reason::Never => "never",
            Reason::Blocked => "blocked",
            Reason::Banned => "banned",
            Reason::DenyList => "deny_list",
            Reason::AllowList => "allow_list",
            Reason::Store => "store",
        }
    }
}

/// The source of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store.
    #[default]
    Store,
    /// A lease of quota held by this process.
    Lease,
    /// An earlier denial that this process remembers.
    DenyCache,
    /// The policy's answer while the store is unavailable.
    Fallback,
}

impl Source {
    /// The name in every protocol.
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

/// The decision of one limit. A [`Decision`] has them in the policy's canonical order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitDecision {
    /// Whether this limit admits the cost.
    pub allowed: bool,
    /// Whether the cost exceeds the capacity.
    pub never: bool,
    /// Whether this is the limit whose numbers the decision reports.
    pub binding: bool,
    /// The capacity.
    pub capacity: u64,
    /// The greatest cost that would be admitted after this decision.
    pub remaining: u64,
    /// When this limit would admit the same cost; `None` if it admits it or never will.
    pub retry_after: Option<Micros>,
    /// The time until this limit decides as for an unknown key.
    pub reset_after: Micros,
}

/// The decision about one check.
///
/// A denial is a decision, not an error: see [`Decision::outcome`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a denied request must not proceed"]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request is admitted.
    pub allowed: bool,
    /// The reason.
    pub reason: Reason,
    /// Whether the cost exceeds the capacity, so that waiting does not help.
    pub never: bool,
    /// The capacity of the binding limit; [`Cost::MAX`] for a key on the allow list.
    pub capacity: u64,
    /// The greatest cost that would be admitted after this decision; [`Cost::MAX`] for a key on the allow
    /// list, and 0 if only the policy decided, without the store.
    pub remaining: u64,
    /// When the same cost is admitted if there is no other traffic: exactly then, and not a
    /// microsecond earlier. `None` if it was admitted, never will be, or the key is blocked for
    /// ever.
    pub retry_after: Option<Micros>,
    /// The time until decisions are those for an unknown key; `None` if the key is blocked for
    /// ever.
    pub reset_after: Option<Micros>,
    /// How long an admitted request must wait before it proceeds.
    pub delay: Micros,
    /// The cost that was charged, or for a refund or a cancellation, that was refunded.
    pub granted: u64,
    /// Whether the store changed.
    pub changed: bool,
    /// The source of the decision.
    pub source: Source,
    /// Whether the decision was made without the store because it is unavailable.
    pub degraded: bool,
    /// Whether this repeats the decision about an earlier request with the same id.
    pub replayed: bool,
    /// Whether the policy is a shadow policy: only the decisions of its limits may deny.
    pub shadow: bool,
    /// The time of the decision on the store's clock.
    pub time: Timestamp,
    /// The lease that was acquired, renewed or released.
    pub lease: Option<Id>,
    /// The reservation that was made or cancelled.
    pub reservation: Option<Id>,
    /// The index of the binding limit in the policy's canonical order.
    pub binding: usize,
    pub(crate) details: Details,
}

/// The most limits whose decisions are stored without an allocation.
pub(crate) const MAX_INLINE_LIMITS: usize = 4;

/// The decisions of the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Details {
    /// The decision of the only limit is that of the policy.
    #[default]
    Single,
    /// The number of limits, and their decisions.
    Few(usize, [LimitDecision; MAX_INLINE_LIMITS]),
    Many(Box<[LimitDecision]>),
}

impl Decision {
    /// A denial at this time, for the caller to fill in.
    #[inline]
    pub(crate) fn denied(time: Timestamp) -> Decision {
        Decision { time, ..Decision::default() }
    }

    /// Creates the decision about a key on a list. No limit is checked: a key on the allow list may spend
    /// any cost, so `capacity` and `remaining` are [`Cost::MAX`].
    pub fn from_list(listed: Listed, time: Timestamp) -> Decision {
        let (allowed, reason, spendable) = match listed {
            Listed::Allow => (true, Reason::AllowList, Cost::MAX.get()),
            Listed::Deny => (false, Reason::DenyList, 0),
        };
        Decision {
            allowed,
            reason,
            capacity: spendable,
            remaining: spendable,
            details: Details::Few(0, Default::default()),
            ..Decision::denied(time)
        }
    }

    /// Creates the decision of a store that has no state to check the limits against.
    pub fn from_store(allowed: bool, retry_after: Option<Micros>, time: Timestamp) -> Decision {
        Decision {
            allowed,
            reason: Reason::Store,
            retry_after: retry_after.filter(|_| !allowed),
            details: Details::Few(0, Default::default()),
            ..Decision::denied(time)
        }
    }

    /// The same denial for a request that is made this much later, if nothing was charged or refunded
    /// in between and the cost is still denied. `remaining` stays as it was.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::{Decision, Micros, Timestamp};
    /// let denied = Decision::from_store(false, Some(Micros::from_secs(3)), Timestamp::EPOCH);
    /// let later = denied.repeated_after(Micros::from_secs(1));
    /// assert_eq!(later.retry_after, Some(Micros::from_secs(2)));
    /// assert_eq!(later.time.as_micros(), 1_000_000);
    /// ```
    #[inline]
    pub fn repeated_after(&self, elapsed: Micros) -> Decision {
        let mut later = self.clone();
        let pass =
            |time: &mut Micros| *time = Micros::new(time.get().saturating_sub(elapsed.get()));
        later.time = later.time.saturating_add(elapsed);
        later.source = Source::DenyCache;
        later.retry_after.as_mut().map(pass);
        later.reset_after.as_mut().map(pass);
        for limit in later.each_detail() {
            limit.retry_after.as_mut().map(pass);
            pass(&mut limit.reset_after);
        }
        later
    }

    /// The decisions of the limits, if they differ from that of the policy.
    fn each_detail(&mut self) -> impl Iterator<Item = &mut LimitDecision> {
        let limits = match &mut self.details {
            Details::Single => &mut [][..],
            Details::Few(len, all) => &mut all[..*len],
            Details::Many(all) => &mut all[..],
        };
        limits.iter_mut()
    }

    /// The decision about a cost that is spent from what this decision has charged, this much later.
    /// `left` of it remains. The time stays that of the charge, so that a refund finds it.
    #[inline]
    pub fn spent_from_lease(&self, cost: Cost, left: u64, elapsed: Micros) -> Decision {
        let mut spent = self.repeated_after(elapsed);
        (spent.source, spent.granted, spent.time) = (Source::Lease, cost.get(), self.time);
        spent.remaining = spent.remaining.max(left).min(spent.capacity);
        for limit in spent.each_detail() {
            limit.remaining = limit.remaining.max(left).min(limit.capacity);
        }
        spent
    }

    /// The denial of a request this much later than this decision, because nothing of the quota of this
    /// process is left, and it queries the store again after `retry_after`.
    pub fn denied_by_lease(&self, retry_after: Micros, elapsed: Micros) -> Decision {
        let mut denied = self.repeated_after(elapsed);
        (denied.allowed, denied.changed, denied.granted) = (false, false, 0);
        (denied.reason, denied.source) = (Reason::Limit, Source::Lease);
        (denied.remaining, denied.retry_after) = (0, Some(retry_after));
        for limit in denied.each_detail().filter(|limit| limit.binding) {
            (limit.allowed, limit.remaining) = (false, 0);
            limit.retry_after = Some(retry_after);
        }
        denied
    }

    /// How long the key is banned, if the ban ends later than the limits would deny: also for the
    /// denial that begins the ban. `None` for a banned key whose limits deny for longer.
    #[must_use]
    pub fn banned_for(&self) -> Option<Micros> {
        let is_candidate = matches!(self.reason, Reason::Limit | Reason::Banned);
        self.retry_after.filter(|_| is_candidate && self.outlasts_limits())
    }

    /// Whether something else denies for longer than the limits: a ban or a block.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::{Decision, Timestamp};
    /// let [blocked, admitted] =
    ///     [false, true].map(|allowed| Decision::from_store(allowed, None, Timestamp::EPOCH));
    /// assert!(blocked.outlasts_limits());
    /// assert!(!admitted.outlasts_limits());
    /// ```
    #[must_use]
    pub fn outlasts_limits(&self) -> bool {
        let of_limits = || self.each_limit().filter_map(|limit| limit.retry_after).max();
        !self.allowed && self.retry_after.is_none_or(|retry| Some(retry) > of_limits())
    }

    /// The cost that this decision has certainly charged to the store: what a refund may give back.
    ///
    /// It is zero if the store was unavailable, although the request may be admitted: a refund of such
    /// an admission would credit what was never charged.
    #[must_use]
    pub fn charged_cost(&self) -> Cost {
        let is_charged = self.allowed && self.changed && !self.degraded && !self.is_shadow_denial();
        Cost::new(self.granted).filter(|_| is_charged).unwrap_or(Cost::ZERO)
    }

    /// The decisions of the limits, in the policy's canonical order.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitDecision> {
        self.each_limit().collect()
    }

    /// The decisions of the limits as in [`Decision::limits`], without an allocation.
    pub fn each_limit(&self) -> impl Iterator<Item = LimitDecision> + Clone + '_ {
        let (only, several) = match &self.details {
            Details::Single => (Some(self.only_limit()), &[][..]),
            Details::Few(len, all) => (None, &all[..*len]),
            Details::Many(all) => (None, &all[..]),
        };
        only.into_iter().chain(several.iter().copied())
    }

    /// Whether the decision is that of the only limit of the policy.
    #[must_use]
    #[inline]
    pub fn has_single_limit(&self) -> bool {
        matches!(self.details, Details::Single)
    }

    /// Whether the request was admitted only because the policy is a shadow policy: one of its
    /// limits denied.
    #[must_use]
    pub fn is_shadow_denial(&self) -> bool {
        self.shadow && self.each_limit().any(|limit| !limit.allowed)
    }

    /// The name of the reason in every protocol: that of [`Decision::reason`], or `ok` if the limits
    /// admit the request.
    #[must_use]
    pub fn reason_name(&self) -> &'static str {
        let is_ok = self.reason == Reason::Limit && self.allowed && !self.is_shadow_denial();
        if is_ok { "ok" } else { self.reason.as_str() }
    }

    /// The size of its heap allocations in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        if let Details::Many(all) = &self.details { size_of_val(&**all) } else { 0 }
    }

    pub(crate) fn only_limit(&self) -> LimitDecision {
        LimitDecision {
            allowed: self.allowed,
            never: self.never,
            binding: true,
            capacity: self.capacity,
            remaining: self.remaining,
            retry_after: self.retry_after,
            // The decision of a single limit has a reset; a block stores the limit first.
            reset_after: self.reset_after.unwrap_or_default(),
        }
    }
}

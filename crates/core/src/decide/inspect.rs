//! Inspection of a key: the use of each limit, and when it recovers.

use alloc::vec::Vec;

use super::context::CheckContext;
use crate::algorithm::{Anomalies, Lease, LimitState, Usage};
use crate::id::Id;
use crate::key::{Block, Reservation};
use crate::limit::Limit;
use crate::policy::{Ban, BanState};
use crate::time::{Micros, Timestamp, duration_until};

/// The maximum number of leases in an inspection.
pub const MAX_INSPECTED_LEASES: usize = 1_000;

/// Everything that a store keeps of a key under a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The limits, in the policy's canonical order.
    pub limits: Vec<LimitInspection>,
    /// The active block.
    pub block: Option<Block>,
    /// The counted denials and the ban; `None` if the policy bans no keys.
    pub ban: Option<BanInspection>,
    /// Reservations under these limits that have not acted yet, soonest first.
    pub reservations: Vec<ReservationInspection>,
    /// What this process holds of the key's quota, if the policy is [leased](crate::Policy::leased).
    pub held: Option<HeldQuota>,
    /// The time until the state equals that of an unknown key, also in other versions of the
    /// policy; `None` if it already does. Blocks are not included.
    pub recovers_after: Option<Micros>,
    /// The store's time.
    pub time: Timestamp,
}

/// The use of one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitInspection {
    /// The capacity.
    pub capacity: u64,
    /// The cost that was charged and has not recovered, rounded up; above the capacity in debt.
    pub used: u64,
    /// The greatest cost that would be admitted now.
    pub remaining: u64,
    /// The time until nothing is used.
    pub reset_after: Micros,
    /// The held leases, soonest to expire first, then by id; at most [`MAX_INSPECTED_LEASES`].
    pub leases: Vec<LeaseInspection>,
}

/// Quota of a key that a process has charged in advance and not spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldQuota {
    /// The cost that it can admit.
    pub remaining: u64,
    /// The time until the last of it is not spent any more.
    pub ends_after: Micros,
}

/// The denials of a key that are counted towards a ban, or its ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BanInspection {
    /// The number of denials within a window that bans the key.
    pub max_denials: u64,
    /// The denials in the open window; 0 while the key is banned.
    pub denials: u64,
    /// The time until the window ends, if one is open.
    pub window_ends_after: Option<Micros>,
    /// The time until the ban ends, if the key is banned.
    pub banned_for: Option<Micros>,
}

/// A held lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseInspection {
    /// The id of the lease.
    pub id: Id,
    /// The number of slots it holds.
    pub cost: u64,
    /// The time until it expires.
    pub ends_after: Micros,
}

/// A reservation that has not acted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReservationInspection {
    /// The id of the reservation.
    pub id: Id,
    /// The cost that was charged.
    pub cost: u64,
    /// The time until the request may proceed.
    pub acts_after: Micros,
}

/// Inspects a key without changing it.
#[must_use]
pub fn inspect(context: &CheckContext<'_>, now: Timestamp) -> Inspection {
    let recovers_at = Some(context.state.recovers_at(now)).filter(|at| *at > now.as_micros());
    let state = context.state.as_read_by(context.policy);
    let limits = context.policy.limits().iter().enumerate();
    let reservations = context.state.reservations(now).iter();
    let reservation = |reservation: &Reservation| ReservationInspection {
        id: reservation.id,
        cost: reservation.cost,
        acts_after: duration_until(now, reservation.acts_at),
    };
    Inspection {
        limits: limits
            .map(|(index, limit)| inspect_limit(limit, state.limit(index), now))
            .collect(),
        block: context.active_block(now),
        ban: context.policy.enforced_ban().map(|ban| inspect_ban(ban, context, now)),
        reservations: reservations
            .filter(|reservation| reservation.is_of(context.policy))
            .map(reservation)
            .collect(),
        held: None,
        recovers_after: recovers_at.map(|recovers_at| duration_until(now, recovers_at)),
        time: now,
    }
}

fn inspect_ban(ban: Ban, context: &CheckContext<'_>, now: Timestamp) -> BanInspection {
    let state = context.ban(now, &mut Anomalies::default());
    let ends_after = state.end().map(|end| end.duration_since(now));
    let (denials, is_banned) = match state {
        BanState::Counting { denials, .. } => (denials, false),
        BanState::Clear => (0, false),
        BanState::Banned { .. } => (0, true),
    };
    BanInspection {
        max_denials: ban.denials(),
        denials,
        window_ends_after: ends_after.filter(|_| !is_banned),
        banned_for: ends_after.filter(|_| is_banned),
    }
}

fn inspect_limit(limit: &Limit, state: &LimitState, now: Timestamp) -> LimitInspection {
    let algorithm = &limit.algorithm;
    let usage = algorithm.advance_to(state, now, &mut Anomalies::default());
    LimitInspection {
        capacity: limit.capacity(),
        used: algorithm.used(&usage),
        remaining: algorithm.remaining(&usage),
        reset_after: duration_until(now, algorithm.recovers_at(state, &usage)),
        leases: leases(state, &usage, now),
    }
}

fn leases(state: &LimitState, usage: &Usage, now: Timestamp) -> Vec<LeaseInspection> {
    let (Some(set), Usage::Concurrency(usage)) = (state.leases(), usage) else {
        return Vec::new();
    };
    let lease = |lease: &Lease| LeaseInspection {
        id: lease.id,
        cost: lease.cost,
        ends_after: duration_until(now, lease.end),
    };
    let mut leases: Vec<_> = set.leases[usage.first..].iter().map(lease).collect();
    leases.sort_by_key(|lease| (lease.ends_after, lease.id));
    leases.truncate(MAX_INSPECTED_LEASES);
    leases
}

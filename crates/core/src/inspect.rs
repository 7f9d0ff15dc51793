//! Looking at a key: what each limit holds of it, and how long that lasts.

use alloc::vec::Vec;

use crate::decide::{Block, Slot};
use crate::limit::Limit;
use crate::meter::span;
use crate::request::Id;
use crate::state::{Effects, LimitState, Settled};
use crate::time::{Micros, Timestamp};

/// Everything that is kept of a (policy, key). Nothing is changed by looking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// One for each limit, in the policy's canonical order.
    pub limits: Vec<LimitInspection>,
    /// The block that holds.
    pub block: Option<Block>,
    /// Reservations under these limits that have not acted, soonest first.
    pub reservations: Vec<ReservationInspection>,
    /// Until all of it is as an unknown key's, under whatever limits it was charged; absent if it
    /// is already. Blocks are not counted in.
    pub recovers_after: Option<Micros>,
    /// The store's time.
    pub time: Timestamp,
}

/// What a limit holds of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitInspection {
    /// The most it can hold.
    pub capacity: u64,
    /// What is charged and has not recovered, rounded up; above the capacity in debt.
    pub used: u64,
    /// What could be spent at once.
    pub remaining: u64,
    /// Until nothing is used any more.
    pub reset_after: Micros,
    /// The leases that are held, soonest to lapse first.
    pub leases: Vec<LeaseInspection>,
}

/// A place that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseInspection {
    /// The lease's id.
    pub id: Id,
    /// How many places it holds.
    pub cost: u64,
    /// Until it lapses.
    pub ends_after: Micros,
}

/// A charge made for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReservationInspection {
    /// The reservation's id.
    pub id: Id,
    /// What was charged.
    pub cost: u64,
    /// Until it may act.
    pub acts_after: Micros,
}

/// Looks at a key.
#[must_use]
pub fn inspect(slot: &Slot<'_>, now: Timestamp) -> Inspection {
    let recovers_at = Some(slot.state.recovers_at(now)).filter(|x| *x > now.as_micros());
    let state = slot.state.in_form_of(slot.policy);
    let limits = slot.policy.limits().iter().enumerate();
    let reservations =
        slot.state.reservations(now).iter().filter(|reservation| reservation.is_of(slot.policy));
    let reservation = |reservation: &crate::key_state::Reservation| ReservationInspection {
        id: reservation.id,
        cost: reservation.cost,
        acts_after: span(now, reservation.acts_at),
    };
    Inspection {
        limits: limits.map(|(index, x)| inspect_limit(x, state.limit(index), now)).collect(),
        block: slot.block.filter(|block| block.holds(now)),
        reservations: reservations.map(reservation).collect(),
        recovers_after: recovers_at.map(|recovers_at| span(now, recovers_at)),
        time: now,
    }
}

fn inspect_limit(limit: &Limit, state: &LimitState, now: Timestamp) -> LimitInspection {
    let settled = limit.settle(state, now, &mut Effects::default());
    LimitInspection {
        capacity: limit.capacity(),
        used: limit.used(&settled),
        remaining: limit.remaining(&settled),
        reset_after: span(now, limit.recovers_at(state, &settled)),
        leases: leases(state, &settled, now),
    }
}

fn leases(state: &LimitState, settled: &Settled, now: Timestamp) -> Vec<LeaseInspection> {
    let (Some(held), Settled::Leases(value)) = (state.held(), settled) else { return Vec::new() };
    let live = held.leases.get(value.first..).unwrap_or_default();
    let lease = |lease: &crate::leases::Lease| LeaseInspection {
        id: lease.id,
        cost: lease.cost,
        ends_after: span(now, lease.end),
    };
    live.iter().map(lease).collect()
}

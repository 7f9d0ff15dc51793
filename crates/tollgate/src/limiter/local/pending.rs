//! Keys that this process has charged, and the charges of the store for them.

use std::collections::HashSet;

use tokio::time::Instant;
use tollgate_algorithms::{Cost, Id, Inspection, Operation, Policy, Timestamp};
use tollgate_redis::Reply;
use tollgate_state::StoreError;

use crate::limiter::shares::Share;

pub(super) type KeyName = (Box<str>, Box<[u8]>);

/// A key that was charged in this process.
#[derive(Debug)]
pub(super) struct PendingKey {
    pub(super) policy: Policy,
    /// The share by which the key was charged last.
    pub(super) share: Share,
    /// The cost for which the store was not charged.
    pub(super) uncharged: u64,
    /// The leases that the store does not know.
    pub(super) leases: HashSet<Id>,
    /// The charges that were sent and whose outcome is unknown.
    pub(super) attempt: Option<Attempt>,
    /// Whether the task has taken the key, so that it is not in the order.
    pub(super) is_taken: bool,
    /// Whether charges are in flight.
    pub(super) is_charging: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) started_at: Instant,
    /// The part of the uncharged cost that the charges are for.
    pub(super) uncharged: u64,
    pub(super) charges: Vec<Charge>,
}

/// A charge of one limit or of a lease.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) id: Box<[u8]>,
    pub(super) operation: Operation,
    pub(super) cost: Cost,
    /// The index of the limit; `None` for a lease.
    pub(super) limit: Option<usize>,
    pub(super) outcome: ChargeOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeOutcome {
    Unknown,
    NotExecuted,
    Charged,
    Rejected,
}

impl Charge {
    /// Returns whether the store has not confirmed the charge.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.outcome, ChargeOutcome::Unknown | ChargeOutcome::NotExecuted)
    }

    pub(super) fn is_lease(&self, id: Id) -> bool {
        self.operation == Operation::Acquire { lease: id }
    }
}

/// Returns the charges for what a key has used of its shares.
pub(super) fn charges(
    key: &PendingKey,
    inspection: &Inspection,
    time: Timestamp,
    prefix: &str,
) -> Vec<Charge> {
    let mut charges = Vec::new();
    let mut add = |operation, cost, limit| {
        let Some(cost) = Cost::new(cost).filter(|cost| *cost > Cost::ZERO) else { return };
        let id = format!("{prefix}:{}", charges.len()).into_bytes().into();
        charges.push(Charge { id, operation, cost, limit, outcome: ChargeOutcome::NotExecuted });
    };
    for (index, limit) in key.policy.limits().iter().enumerate() {
        let inspected = key.share.index(index).and_then(|share| inspection.limits.get(share));
        if let Some(inspected) = inspected.filter(|_| !limit.is_concurrent()) {
            // What was charged before is still used, and what was used before may have recovered.
            add(backfill(index, time), inspected.used.min(key.uncharged), Some(index));
        }
    }
    let leases = inspection.limits.iter().find(|limit| !limit.leases.is_empty());
    for lease in leases.iter().flat_map(|limit| &limit.leases) {
        if key.leases.contains(&lease.id) {
            add(Operation::Acquire { lease: lease.id }, lease.cost, None);
        }
    }
    charges
}

/// The operation that charges one limit for requests that this process has admitted.
pub(super) fn backfill(limit: usize, time: Timestamp) -> Operation {
    #[expect(clippy::expect_used, reason = "a policy has at most 16 limits")]
    let limit = u8::try_from(limit).expect("the index of a limit fits u8");
    Operation::Backfill { limit, time }
}

pub(super) fn outcome(reply: &Reply, charge: &Charge) -> ChargeOutcome {
    match reply {
        Reply::Answer(Ok(answer)) if charge.limit.is_none() && !answer.allowed() => {
            ChargeOutcome::Rejected
        }
        Reply::Answer(Ok(_)) => ChargeOutcome::Charged,
        Reply::Answer(Err(StoreError::Request(_))) => ChargeOutcome::Rejected,
        Reply::Answer(Err(error)) if error.was_not_executed() => ChargeOutcome::NotExecuted,
        _ => ChargeOutcome::Unknown,
    }
}

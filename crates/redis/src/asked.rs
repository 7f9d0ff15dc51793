//! Requests that wait for a call: owned, for the caller may be gone before they are sent.

use tollgate_core::{Cost, Operation, Policy, Request};

/// A request whose checks are all of one group of keys.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) verb: Operation,
    pub(crate) checks: Vec<AskedCheck>,
    pub(crate) request_id: Option<Box<[u8]>>,
    /// Whether everything that is kept of the key is asked for, and nothing decided.
    pub(crate) inspects: bool,
    /// The whole request where this is a part of it.
    pub(crate) part_of: Option<Whole>,
}

/// A request of several groups, to one of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) fingerprint: u128,
    /// Whether the part is remembered for itself, and does not stand for the whole.
    pub(crate) is_aside: bool,
}

/// One (policy, key, cost).
#[derive(Clone, Debug)]
pub(crate) struct AskedCheck {
    pub(crate) policy: Policy,
    pub(crate) key: Box<[u8]>,
    pub(crate) cost: Cost,
}

impl Asked {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        let checks = request.checks.iter().map(|check| AskedCheck {
            policy: check.policy.clone(),
            key: check.key.into(),
            cost: check.cost,
        });
        Asked {
            verb: request.operation,
            checks: checks.collect(),
            // Looking is not remembered.
            request_id: request
                .request_id
                .filter(|_| request.operation != Operation::Peek)
                .map(Into::into),
            inspects: false,
            part_of: None,
        }
    }
}

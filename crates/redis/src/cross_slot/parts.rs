//! The parts of a request by partition or by key.

use tollgate_algorithms::Decision;
use tollgate_state::Answer;

use crate::keyspace::Keyspace;
use crate::request::{RequestCheck, StoreRequest, in_order};

/// The checks of a request in one partition, or on one key.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) partition: u16,
    pub(super) checks: Vec<RequestCheck>,
    /// The indices of the checks in the request.
    indices: Vec<usize>,
}

/// The parts of a request, in the order of their first check.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// The checks that decide; if all checks are shadows, the first part of them.
    pub(super) enforced: Vec<Part>,
    /// The checks of shadow policies.
    pub(super) shadows: Vec<Part>,
    /// The number of checks of the request.
    checks: usize,
}

impl Parts {
    /// Divides a request by partition, or by key if `by_key`.
    pub(super) fn new(request: &StoreRequest, keyspace: &Keyspace, by_key: bool) -> Self {
        let mut parts = Parts { checks: request.checks.len(), ..Parts::default() };
        for (index, check) in request.checks.iter().enumerate() {
            let partition = keyspace.partition_of(&check.key);
            let is_shadow = check.policy.is_shadow();
            let list = if is_shadow { &mut parts.shadows } else { &mut parts.enforced };
            let shares_call = |part: &Part| match by_key {
                true => part.checks[0].has_key_of(check),
                false => part.partition == partition,
            };
            let known = list.iter().position(shares_call);
            let position = known.unwrap_or_else(|| {
                list.push(Part { partition, checks: Vec::new(), indices: Vec::new() });
                list.len() - 1
            });
            list[position].checks.push(check.clone());
            list[position].indices.push(index);
        }
        if parts.enforced.is_empty() {
            parts.enforced.extend(parts.shadows.drain(..1.min(parts.shadows.len())));
        }
        parts
    }

    /// Combines the decisions of the enforced parts, then of the shadows, in the order of the checks.
    pub(super) fn into_answer(self, decided: Vec<Vec<Decision>>) -> Answer {
        let parts = self.enforced.iter().chain(&self.shadows).zip(decided);
        let by_check = parts.flat_map(|(part, decided)| part.indices.iter().copied().zip(decided));
        in_order(self.checks, by_check)
    }
}

//! Settlements of charges that were recorded under the id of their request.

use tollgate_algorithms::{
    Check, Decision, LimitDecision, Reason, RecordedCharge, Request, RequestError, Timestamp,
    split_settled,
};

use super::MemoryStore;
use super::request_ids::{ChargedCheck, Hash, Record, RequestIds, Settlement};
use super::stored_key::StoredKey;
use crate::store::Answer;

/// The checks of a request on one (policy, key).
struct Group<'a> {
    check: Check<'a>,
    /// The indices of the checks.
    members: Vec<usize>,
}

impl MemoryStore {
    /// Settles the charge of an id, or returns the first answer again.
    pub(super) fn settle(
        &self,
        ids: &mut RequestIds,
        id: &Hash,
        request: &Request<'_>,
        now: Timestamp,
    ) -> Result<Answer, RequestError> {
        let record = ids.get(id, now).ok_or(RequestError::UnknownCharge)?;
        if let Some(answer) = record.settled(request.checks)? {
            return Ok(answer);
        }
        let charged = record.charged.iter().zip(request.checks);
        for (charged, check) in charged {
            if check.policy.has_concurrent() && charged.cost != check.cost.get() {
                return Err(RequestError::LeaseCost);
            }
        }
        let costs: Box<[u64]> = request.checks.iter().map(|check| check.cost.get()).collect();
        let mut decisions = vec![Decision::default(); request.checks.len()];
        for Group { check, members } in group(request.checks) {
            let own: Vec<u64> = members.iter().map(|member| costs[*member]).collect();
            let actual = own.iter().fold(0, |sum: u64, cost| sum.saturating_add(*cost));
            let charge = recorded_charge(record, &members, &check);
            let key = StoredKey::new(check.key);
            let decision = self.settle_key(check.policy, &key, actual, charge.as_ref(), now);
            for (member, granted) in members.iter().zip(split_settled(decision.granted, &own)) {
                decisions[*member].clone_from(&decision);
                decisions[*member].granted = granted;
            }
        }
        let answer = Answer { decisions };
        // A store without room changes nothing, so the settlement can be repeated.
        let is_refused = |decision: &Decision| decision.reason == Reason::Store;
        if !answer.decisions.iter().all(is_refused) {
            ids.settle(id, Settlement { costs, answer: answer.clone() });
        }
        Ok(answer)
    }
}

fn group<'a>(checks: &[Check<'a>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (index, check) in checks.iter().enumerate() {
        let is_same = |group: &&mut Group<'_>| {
            group.check.key == check.key && group.check.policy.shares_name(check.policy)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.members.push(index),
            None => groups.push(Group { check: *check, members: vec![index] }),
        }
    }
    groups
}

/// Returns what the checks of a group were charged; `None` if they were not.
fn recorded_charge(
    record: &Record,
    members: &[usize],
    check: &Check<'_>,
) -> Option<RecordedCharge> {
    let first = members[0];
    let decision = &record.answer.decisions[first];
    // A store without room admitted the check without a charge.
    let is_uncounted = decision.reason == Reason::Store;
    if decision.replayed || decision.is_shadow_denial() || is_uncounted {
        return None;
    }
    let cost = members.iter().map(|member| record.charged[*member].cost).sum();
    // A shadow policy admits a blocked key without a charge.
    if cost > 0 && !decision.changed {
        return None;
    }
    let ChargedCheck { policy, .. } = &record.charged[first];
    let time = decision.time;
    let recovers_at = |limit: LimitDecision| time.saturating_add(limit.reset_after).as_micros();
    let is_same = policy.ptr_eq(check.policy) || policy.limits() == check.policy.limits();
    Some(RecordedCharge {
        cost,
        time,
        recovers_at: match is_same {
            true => decision.each_limit().map(recovers_at).collect(),
            false => Vec::new(),
        },
    })
}

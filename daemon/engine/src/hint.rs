//! Hints in answers about requests that would otherwise have no effect silently.

use tollgate::{Decision, KeyPatternKind, Operation, Policy};

use crate::active::ActiveConfig;
use crate::call::{Call, CheckRequest, Checks, Outcome};
use crate::operation::Action;

impl ActiveConfig {
    /// A hint for the answer to a call with one check: its tier is unknown, or nothing is counted
    /// for its key, which may be a mistake of an operator.
    #[must_use]
    pub fn hint(&self, call: &Call<'_, '_>, outcome: &Outcome) -> Option<String> {
        let Checks::One(check) = &call.checks else { return None };
        let unknown_tier = check.hint.as_deref().map(str::to_owned);
        let unused_key =
            is_unused(call.action, outcome).then(|| self.unused_key(call.action, check));
        match (unknown_tier, unused_key) {
            (Some(tier), Some(key)) => Some(format!("{tier}; {key}")),
            (tier, key) => tier.or(key),
        }
    }

    fn unused_key(&self, action: Action, check: &CheckRequest<'_>) -> String {
        let mut hint =
            "nothing is counted for this key: it has not been seen, or has recovered".to_owned();
        if let Action::Execute(Operation::Block { .. }) = action {
            hint.push_str("; the block applies to its next request");
        }
        let forms = self.rules.key_forms(check.policy.name(), self.ipv6_prefix);
        if let Some(forms) = forms.filter(|x| !x.can_match(KeyPatternKind::Exact(&check.key))) {
            hint.push_str(&format!("; {forms}"));
            let written = str::from_utf8(&check.key).ok();
            if let Some(key) = written.and_then(|key| forms.suggest(key)) {
                hint.push_str(&format!("; did you mean {key:?}?"));
            }
        }
        hint
    }
}

/// Whether an operator's request, or an inspection, found no state of the key besides its own.
fn is_unused(action: Action, outcome: &Outcome) -> bool {
    match (action, outcome) {
        (Action::Inspect, Outcome::Inspection(key)) => {
            key.recovers_after.is_none() && key.block.is_none()
        }
        (Action::Execute(operation), Outcome::Decision(decision)) => {
            let is_known = match operation {
                Operation::Block { .. } => has_usage(decision),
                // Beyond the capacity, `remaining` does not show what was used before.
                Operation::Penalize => decision.each_limit().any(|limit| {
                    limit.remaining == 0
                        || limit.capacity.saturating_sub(limit.remaining) > decision.granted
                }),
                Operation::Refund { .. } | Operation::Reset | Operation::Unblock => {
                    // Without state, the key differs from an unknown one only by a block.
                    let is_blocked = decision.reset_after.is_none_or(|time| time.get() > 0);
                    decision.changed || is_blocked || has_usage(decision)
                }
                _ => true,
            };
            !is_known
        }
        _ => false,
    }
}

fn has_usage(decision: &Decision) -> bool {
    decision.each_limit().any(|limit| limit.reset_after.get() > 0)
}

/// The hint about a tier that a policy does not have.
pub(crate) fn unknown_tier(active: &ActiveConfig, policy: &Policy, tier: &str) -> Option<Box<str>> {
    let error = active.policies.resolve(policy.name(), b"", Some(tier)).err()?;
    Some(format!("{error}; the limits without a tier apply").into())
}

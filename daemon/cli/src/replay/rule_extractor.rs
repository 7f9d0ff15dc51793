//! Extracts the checks of a line with the rules of a configuration.

use std::collections::HashMap;

use tollgate::{MAX_KEY_LEN, Operation, Policies};
use tollgate_replay::log::Line;
use tollgate_replay::{
    Candidate, CandidatePolicy, LogCheck, LogRequest, PlainCheck, RequestExtractor, Skip,
};
use tollgate_server::rules::{MatchedCheck, RuleOutcome, Rules};

use super::context::{ExtractContext, skip_reason};

/// Applies the rules to each line.
#[derive(Debug)]
pub(super) struct RuleExtractor {
    pub(super) rules: Rules,
    pub(super) policies: Policies,
    pub(super) context: ExtractContext,
    /// The numbers of the policies by name.
    numbers: HashMap<String, u32>,
}

impl RuleExtractor {
    pub(super) fn new(rules: Rules, policies: Policies, context: ExtractContext) -> Self {
        let numbers = policies.iter().map(|policy| policy.name().to_owned()).zip(0..).collect();
        RuleExtractor { rules, policies, context, numbers }
    }

    /// The candidate with all policies and their variants.
    pub(super) fn candidate(&self, name: String) -> Candidate {
        let policies = self.policies.clone();
        let names: Vec<_> = policies.iter().map(|policy| policy.name().to_owned()).collect();
        let policy_names = names.clone();
        let resolve = move |policy: u32, key: &[u8]| {
            let name = usize::try_from(policy).ok().and_then(|index| names.get(index))?;
            policies.resolve(name, key, None).ok().cloned()
        };
        let policy = CandidatePolicy::PerKey(Box::new(resolve));
        Candidate { name, policy, policy_names }
    }

    /// Whether every line makes at most one plain check.
    pub(super) fn is_plain(&self) -> bool {
        self.rules.rules.iter().all(|rule| {
            matches!(&*rule.checks, [only] if only.tier.is_none())
                && rule.checks.iter().all(|check| self.numbers.contains_key(&*check.policy))
        })
    }

    fn with_checks<T>(
        &self,
        line: &Line<'_>,
        take: impl FnOnce(Vec<MatchedCheck<'_>>) -> Result<T, Skip>,
    ) -> Result<T, Skip> {
        self.context.with_facts(line, |facts| match self.rules.evaluate(facts, MAX_KEY_LEN) {
            Ok(RuleOutcome::Checks(checks)) if !checks.is_empty() => take(checks),
            Ok(RuleOutcome::Checks(_) | RuleOutcome::NoRule(_)) => Err(Skip::NoRule),
            Ok(RuleOutcome::Deny(_)) => Err(Skip::NoKey),
            Err(missing) => Err(skip_reason(missing)),
        })
    }

    fn number(&self, policy: &str) -> Result<u32, Skip> {
        let unknown = || Skip::Invalid(format!("unknown policy {policy:?}"));
        self.numbers.get(policy).copied().ok_or_else(unknown)
    }

    fn owned_check(&self, matched: MatchedCheck<'_>) -> Result<LogCheck, Skip> {
        let policy = self.number(matched.policy)?;
        let variant = match matched.tier.as_deref().map(std::str::from_utf8) {
            // As at a gateway, an unknown tier is ignored, because a client names it.
            None | Some(Err(_)) => None,
            Some(Ok(tier)) => {
                let resolved = self.policies.resolve(matched.policy, &matched.key, Some(tier));
                resolved.ok().cloned()
            }
        };
        Ok(LogCheck { policy, variant, key: matched.key, cost: matched.cost })
    }
}

impl RequestExtractor for RuleExtractor {
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip> {
        self.with_checks(line, |mut checks| {
            let Some(check) = checks.pop().filter(|_| checks.is_empty()) else {
                return Err(Skip::Invalid(
                    "the path is ambiguous and matches two rules; use --decisions to decide it"
                        .to_owned(),
                ));
            };
            key.extend_from_slice(&check.key);
            Ok(PlainCheck { policy: self.number(check.policy)?, cost: check.cost })
        })
    }

    fn request(&self, line: &Line<'_>, _: u64) -> Result<LogRequest, Skip> {
        self.with_checks(line, |checks| {
            let checks: Result<Vec<_>, _> =
                checks.into_iter().map(|check| self.owned_check(check)).collect();
            let operation = Operation::Check { lease: None };
            Ok(LogRequest { operation, checks: checks?, request_id: None })
        })
    }
}

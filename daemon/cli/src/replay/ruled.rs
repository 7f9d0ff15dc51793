//! Whose line it is, and under which policies, by the rules of a configuration.

use std::collections::HashMap;

use tollgate::{Operation, Policies};
use tollgate_replay::log::Line;
use tollgate_replay::{Alternative, Ask, Asked, AskedCheck, Holds, NotAsked, One};
use tollgate_server::rules::{MatchedCheck, RuleOutcome, Rules};

use super::facts::{Sight, not_asked};

/// The longest key that a rule makes.
const KEY_BYTES: usize = tollgate::MAX_KEY_LEN;

/// Lines are asked as the rules say.
#[derive(Debug)]
pub(super) struct Ruled {
    pub(super) rules: Rules,
    pub(super) policies: Policies,
    pub(super) sight: Sight,
    /// The numbers of the policies by name.
    numbers: HashMap<String, u32>,
}

impl Ruled {
    pub(super) fn new(rules: Rules, policies: Policies, sight: Sight) -> Self {
        let numbers = policies.iter().map(|policy| policy.name().to_owned()).zip(0..).collect();
        Ruled { rules, policies, sight, numbers }
    }

    /// All policies, in all their forms.
    pub(super) fn alternative(&self, name: String) -> Alternative {
        let policies = self.policies.clone();
        let names: Vec<_> = policies.iter().map(|policy| policy.name().to_owned()).collect();
        let policies_by_number = names.clone();
        let choose = move |policy: u32, key: &[u8]| {
            let name = usize::try_from(policy).ok().and_then(|x| names.get(x))?;
            policies.resolve(name, key, None).ok().cloned()
        };
        let holds = Holds::Chosen(Box::new(choose));
        Alternative { name, holds, policies: policies_by_number }
    }

    /// Whether each line asks one plain check at most.
    pub(super) fn is_plain(&self) -> bool {
        self.rules.rules.iter().all(|rule| {
            matches!(&*rule.checks, [only] if only.tier.is_none())
                && rule.checks.iter().all(|check| self.numbers.contains_key(&*check.policy))
        })
    }

    fn found<T>(
        &self,
        line: &Line<'_>,
        take: impl FnOnce(Vec<MatchedCheck<'_>>) -> Result<T, NotAsked>,
    ) -> Result<T, NotAsked> {
        self.sight.facts(line, |facts| match self.rules.evaluate(facts, KEY_BYTES) {
            Ok(RuleOutcome::Checks(checks)) if !checks.is_empty() => take(checks),
            Ok(RuleOutcome::Checks(_) | RuleOutcome::NoRule(_)) => Err(NotAsked::Nothing),
            Ok(RuleOutcome::Deny(_)) => Err(NotAsked::NoKey),
            Err(why) => Err(not_asked(why)),
        })
    }

    fn number(&self, policy: &str) -> Result<u32, NotAsked> {
        let unknown = || NotAsked::Broken(format!("there is no policy {policy:?}"));
        self.numbers.get(policy).copied().ok_or_else(unknown)
    }

    fn check(&self, found: MatchedCheck<'_>) -> Result<AskedCheck, NotAsked> {
        let policy = self.number(found.policy)?;
        let form = match found.tier.as_deref().map(std::str::from_utf8) {
            // As at a gateway, a tier that there is not is the usual one: a client names it.
            None | Some(Err(_)) => None,
            Some(Ok(tier)) => {
                let resolved = self.policies.resolve(found.policy, &found.key, Some(tier));
                resolved.ok().cloned()
            }
        };
        Ok(AskedCheck { policy, form, key: found.key, cost: found.cost })
    }
}

impl Ask for Ruled {
    fn one(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<One, NotAsked> {
        self.found(line, |mut checks| {
            let Some(check) = checks.pop().filter(|_| checks.is_empty()) else {
                return Err(NotAsked::Broken(
                    "its path is read in two ways, which are two rules'; --decisions decides it"
                        .to_owned(),
                ));
            };
            key.extend_from_slice(&check.key);
            Ok(One { policy: self.number(check.policy)?, cost: check.cost })
        })
    }

    fn any(&self, line: &Line<'_>, _: u64) -> Result<Asked, NotAsked> {
        self.found(line, |checks| {
            let checks: Result<Vec<_>, _> =
                checks.into_iter().map(|check| self.check(check)).collect();
            Ok(Asked { verb: Operation::Check { lease: None }, checks: checks?, request_id: None })
        })
    }
}

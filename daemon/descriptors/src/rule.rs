//! Rules for descriptors.

use std::ops::Deref;
use std::sync::Arc;

use envoy_types::pb::google::protobuf::Struct;
use tollgate::{Kind, Policy};

use super::limits::PolicyFactory;
use super::unit::Unit;

/// The rule of a descriptor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rule {
    /// The limits.
    pub limits: Limits,
    /// The number of requests per unit; that of the first limit, if there are several.
    pub requests_per_unit: u32,
    /// The unit; `None` if unlimited or if the window is not a unit.
    pub unit: Option<Unit>,
    /// The name by which other rules can replace it.
    pub name: Option<String>,
    /// The names of rules that are skipped if this one matches in the same request.
    pub replaces: Vec<String>,
    /// Whether the rule is decided and counted but never enforced.
    pub shadow: bool,
    /// Whether the rule denies only if all other quota rules in the request are over the limit too.
    pub quota: bool,
    /// Whether the stat contains all values of the request.
    pub detailed_metric: bool,
    /// The metadata in the response to an admitted request.
    pub metadata: Option<Arc<Struct>>,
}

/// The limits of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Every request is admitted, and none is counted.
    Unlimited,
    /// Every request is denied: 0 requests per unit.
    DenyAll,
    /// The limits of a policy.
    Policy(Policy),
}

impl Rule {
    /// A rule with a number of requests per unit and no other settings.
    pub(super) fn per_unit(policies: &PolicyFactory, count: u32, unit: Unit) -> Self {
        Rule {
            limits: policies.per_unit(count, unit, false),
            requests_per_unit: count,
            unit: Some(unit),
            name: None,
            replaces: Vec::new(),
            shadow: false,
            quota: false,
            detailed_metric: false,
            metadata: None,
        }
    }

    /// The policy, if there is one.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        match &self.limits {
            Limits::Policy(policy) => Some(policy),
            Limits::Unlimited | Limits::DenyAll => None,
        }
    }

    /// Whether the rule is unlimited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.limits == Limits::Unlimited
    }

    /// Whether the rule has one limit with a fixed window, as all rules in envoyproxy/ratelimit do.
    pub(super) fn is_fixed(&self) -> bool {
        let limits = self.policy().map(Policy::limits);
        matches!(limits, Some([limit]) if matches!(limit.spec().kind, Kind::Fixed { .. }))
    }

    /// Whether another rule can share the counter: both have the same kind of window, or this rule
    /// counts nothing.
    pub(super) fn counts_as(&self, other: &Rule) -> bool {
        let identity = |rule: &Rule| match rule.policy().map(Policy::limits) {
            Some([limit]) => Some((limit.spec().kind, limit.spec().window)),
            _ => None,
        };
        identity(self) == identity(other) || (self.is_always_over() && self.unit == other.unit)
    }

    /// Whether the limit is 0, so that every request is over the limit.
    #[must_use]
    pub fn is_always_over(&self) -> bool {
        self.limits == Limits::DenyAll
    }
}

/// A configured rule, or one for a limit that a request supplied.
#[derive(Clone, Debug)]
pub enum RuleRef<'a> {
    /// A configured rule.
    Configured(&'a Rule),
    /// The override in a request.
    Override(Arc<Rule>),
}

impl Deref for RuleRef<'_> {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        match self {
            RuleRef::Configured(rule) => rule,
            RuleRef::Override(rule) => rule,
        }
    }
}

//! What holds for the requests that a descriptor matches.

use std::ops::Deref;
use std::sync::Arc;

use envoy_types::pb::google::protobuf::Struct;
use tollgate::{Kind, Policy};

use super::limits::Maker;
use super::unit::Unit;

/// What holds for the requests that a descriptor of the configuration matches.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rule {
    /// What it limits to.
    pub limits: Limits,
    /// How many requests it lets through a unit: of the first of its limits, if it has several.
    pub requests_per_unit: u32,
    /// The unit; none where it is unlimited, and where a window is not of one unit.
    pub unit: Option<Unit>,
    /// Its name, which others may replace.
    pub name: Option<String>,
    /// The names of the rules that are not asked where this one matches in the same request.
    pub replaces: Vec<String>,
    /// Whether it is decided and counted, and never denies.
    pub shadow: bool,
    /// Whether it denies only where every other rule of quotas in the request is over too.
    pub quota: bool,
    /// Whether the stat tells all values of the request.
    pub detailed_metric: bool,
    /// What the answer tells of it, if the request passes.
    pub metadata: Option<Arc<Struct>>,
}

/// What a rule limits to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Everything passes, and nothing is counted.
    Unlimited,
    /// Nothing passes: 0 requests per unit.
    DenyAll,
    /// What the policy says.
    Policy(Policy),
}

impl Rule {
    /// A rule of so many requests per unit, and nothing else.
    pub(super) fn per_unit(maker: &Maker, count: u32, unit: Unit) -> Self {
        Rule {
            limits: maker.per_unit(count, unit, false),
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

    /// The policy to ask, if there is one.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        match &self.limits {
            Limits::Policy(policy) => Some(policy),
            Limits::Unlimited | Limits::DenyAll => None,
        }
    }

    /// Whether it is unlimited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.limits == Limits::Unlimited
    }

    /// Whether it has one limit, of a fixed window, as all of the reference's have.
    pub(super) fn is_fixed(&self) -> bool {
        let limits = self.policy().map(Policy::limits);
        matches!(limits, Some([limit]) if matches!(limit.spec().kind, Kind::Fixed { .. }))
    }

    /// Whether what it counts goes on under a rule of this many per this unit: both are the same
    /// kind of window, or it counts nothing.
    pub(super) fn counts_as(&self, other: &Rule) -> bool {
        let identity = |rule: &Rule| match rule.policy().map(Policy::limits) {
            Some([limit]) => Some((limit.spec().kind, limit.spec().window)),
            _ => None,
        };
        identity(self) == identity(other) || (self.is_always_over() && self.unit == other.unit)
    }

    /// Whether every request is over it: its limit is 0.
    #[must_use]
    pub fn is_always_over(&self) -> bool {
        self.limits == Limits::DenyAll
    }
}

/// A rule of the configuration, or one that a request brought.
#[derive(Clone, Debug)]
pub enum RuleRef<'a> {
    /// Of the configuration.
    Configured(&'a Rule),
    /// Of a request's override.
    Override(Arc<Rule>),
}

impl Deref for RuleRef<'_> {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        match self {
            RuleRef::Configured(configured) => configured,
            RuleRef::Override(brought) => brought,
        }
    }
}

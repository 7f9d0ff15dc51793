//! What a line asks of limits.

use tollgate::{Check, Cost, Operation, Policy, Request};

use crate::decide::Alternative;
use crate::log::Line;

/// Says what lines ask: whose key, under which policy, at what cost.
pub trait Ask: Sync {
    /// One plain check of a line, whose key is appended.
    ///
    /// # Errors
    /// It asks nothing, or something else.
    fn one(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<One, NotAsked>;

    /// Whatever a line asks, the line being the `number`th of all.
    ///
    /// # Errors
    /// It asks nothing.
    fn any(&self, line: &Line<'_>, number: u64) -> Result<Asked, NotAsked>;
}

/// A plain check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct One {
    /// Which policy; keys of different policies are different keys.
    pub policy: u32,
    /// What it costs.
    pub cost: Cost,
}

/// Why a line asks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// No rule is for it.
    Nothing,
    /// What its key is made of is not in the log.
    NoKey,
    /// It cannot be read; why, and what to do.
    Broken(String),
}

/// Whatever a line asks.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked.
    pub verb: Operation,
    /// Of whom.
    pub checks: Vec<AskedCheck>,
    /// What names the request.
    pub request_id: Option<Vec<u8>>,
}

/// A check that owns its key.
#[derive(Clone, Debug)]
pub struct AskedCheck {
    /// Which policy.
    pub policy: u32,
    /// In which form; that of the key, if nobody says.
    pub form: Option<Policy>,
    /// Whose.
    pub key: Vec<u8>,
    /// The verb's number.
    pub cost: Cost,
}

impl Asked {
    /// The policies of its checks by an alternative.
    pub(crate) fn policies(&self, alternative: &Alternative) -> Vec<Option<Policy>> {
        let policy = |asked_check: &AskedCheck| {
            asked_check
                .form
                .clone()
                .or_else(|| alternative.policy(asked_check.policy, &asked_check.key))
        };
        self.checks.iter().map(policy).collect()
    }

    /// Its checks under these policies.
    pub(crate) fn checks<'a>(&'a self, policies: &'a [Option<Policy>]) -> Vec<Check<'a>> {
        let checks = self.checks.iter().zip(policies);
        let check = |(x, policy): (&'a AskedCheck, &'a Option<Policy>)| {
            Some(Check { policy: policy.as_ref()?, key: &x.key, cost: x.cost })
        };
        checks.filter_map(check).collect()
    }

    /// It as a request.
    pub(crate) fn request<'a>(&'a self, checks: &'a [Check<'a>]) -> Request<'a> {
        Request { operation: self.verb, checks, request_id: self.request_id.as_deref() }
    }

    /// What it would spend: the greatest cost of its checks, if it asks to spend any.
    pub(crate) fn spends(&self) -> Option<u64> {
        match self.verb {
            Operation::Check { .. }
            | Operation::Take
            | Operation::Reserve { .. }
            | Operation::Acquire { .. } => self.checks.iter().map(|check| check.cost.get()).max(),
            _ => None,
        }
    }
}

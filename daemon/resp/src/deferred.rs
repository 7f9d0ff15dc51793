//! Checks without keywords on the memory store. Those of a pipeline are decided together, so that the
//! reads of memory for their keys overlap. Any other command, and the end of a batch, decides them first.

use std::cell::RefCell;

use tollgate::{Check, Cost, Decision, Key, Policy};
use tollgate_engine::Batch;

use super::decision;
use super::reply_buffer::ReplyBuffer;

/// The most checks that are decided together.
const MAX_CHECKS: usize = 16;
/// The policies that are kept for later checks.
const MAX_POLICIES: usize = 16;

thread_local! {
    /// Decisions until their replies are written, of all connections of a thread: sixteen decisions
    /// take more memory than the rest of a connection.
    static DECISIONS: RefCell<Vec<Decision>> = const { RefCell::new(Vec::new()) };
}

/// The reply to a check.
#[derive(Clone, Copy, Debug)]
pub(super) enum CheckReply {
    /// All fields of the decision.
    Decision,
    /// The five integers of `CL.THROTTLE`.
    Throttle,
}

impl CheckReply {
    #[inline]
    fn write(self, out: &mut ReplyBuffer, policy: &Policy, decision: &Decision) {
        match self {
            CheckReply::Decision => decision::write(out, policy, decision, None),
            CheckReply::Throttle => decision::write_throttle(out, policy, decision),
        }
    }
}

/// A check, without its key.
#[derive(Clone, Copy, Debug)]
struct DeferredCheck {
    /// The position of its policy.
    policy: usize,
    /// The end of its key; it begins where that of the check before ends.
    key_end: usize,
    cost: Cost,
    reply: CheckReply,
}

/// The checks of a connection that wait.
#[derive(Debug, Default)]
pub(super) struct DeferredChecks {
    checks: Vec<DeferredCheck>,
    keys: Vec<u8>,
    /// The policies of the checks and of some earlier ones, so that few are cloned.
    policies: Vec<Policy>,
}

impl DeferredChecks {
    /// Whether the checks must be decided before another one is added.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.checks.len() >= MAX_CHECKS
    }

    /// About how many bytes the replies will have.
    #[inline]
    pub(super) fn reply_bytes(&self) -> usize {
        self.checks.len() * decision::TYPICAL_LEN
    }

    /// Adds a check.
    #[inline]
    pub(super) fn add(&mut self, policy: &Policy, key: Key<'_>, cost: Cost, reply: CheckReply) {
        let policy = match self.policies.iter().position(|known| known.ptr_eq(policy)) {
            Some(known) => known,
            None => self.add_policy(policy),
        };
        self.keys.extend_from_slice(key.as_bytes());
        self.checks.push(DeferredCheck { policy, key_end: self.keys.len(), cost, reply });
    }

    #[cold]
    fn add_policy(&mut self, policy: &Policy) -> usize {
        self.policies.push(policy.clone());
        self.policies.len() - 1
    }

    fn check(&self, index: usize) -> Check<'_> {
        let start = index.checked_sub(1).map_or(0, |before| self.checks[before].key_end);
        let DeferredCheck { policy, key_end, cost, .. } = self.checks[index];
        Check { policy: &self.policies[policy], key: &self.keys[start..key_end], cost }
    }

    /// Frees memory, if no check waits.
    pub(super) fn shrink(&mut self) {
        if self.checks.is_empty() {
            *self = DeferredChecks::default();
        }
    }

    /// Decides the checks, and writes their replies.
    #[inline]
    pub(super) fn decide(&mut self, batch: &mut Batch<'_>, out: &mut ReplyBuffer) {
        if !self.checks.is_empty() {
            self.decide_all(batch, out);
        }
    }

    fn decide_all(&mut self, batch: &mut Batch<'_>, out: &mut ReplyBuffer) {
        let mut checks = [self.check(0); MAX_CHECKS];
        for (index, check) in checks.iter_mut().enumerate().take(self.checks.len()).skip(1) {
            *check = self.check(index);
        }
        let checks = &checks[..self.checks.len()];
        DECISIONS.with_borrow_mut(|decisions| {
            // A panic may have left the decisions of another connection.
            decisions.clear();
            batch.check_each(checks, decisions);
            let replies = self.checks.iter().map(|check| check.reply);
            for ((check, reply), decision) in checks.iter().zip(replies).zip(&*decisions) {
                reply.write(out, check.policy, decision);
            }
        });
        self.checks.clear();
        self.keys.clear();
        if self.policies.len() > MAX_POLICIES {
            self.policies.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate::MemoryLimiter;
    use tollgate_config::Config;

    use super::*;
    use crate::RespReplay;

    #[test]
    fn few_policies_are_kept_whatever_a_client_sends() {
        let mut client = RespReplay::new(&Config::default(), MemoryLimiter::new()).unwrap();
        for group in 0..20 {
            let burst = |index: usize| if index == 0 { 0 } else { group * MAX_CHECKS + index };
            let commands =
                (0..MAX_CHECKS).map(|index| format!("CL.THROTTLE k {} 1 60\r\n", burst(index)));
            let replies = client.send(commands.collect::<String>().as_bytes());
            assert_eq!(replies.iter().filter(|byte| **byte == b'*').count(), MAX_CHECKS);
            let deferred = &client.conversation.session.deferred;
            assert!(deferred.policies.len() <= MAX_POLICIES && deferred.checks.is_empty());
        }
    }
}

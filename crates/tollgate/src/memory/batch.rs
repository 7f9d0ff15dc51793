//! Independent checks in one call.

use tollgate_algorithms::{Check, Decision, Operation, Request, RequestError};
use tollgate_state::{Answer, Key};

use super::MemoryLimiter;
use crate::id::random_id;

impl MemoryLimiter {
    /// Decides and charges each check on its own, in order. With many keys, this is faster than a call
    /// for each check, because the reads of memory for several checks overlap.
    ///
    /// # Errors
    /// Returns an error if a key is empty or too long; nothing is charged.
    ///
    /// # Examples
    /// ```
    /// use tollgate::{Check, MemoryLimiter, Policy};
    ///
    /// let limiter = MemoryLimiter::new();
    /// let api = Policy::named("api", "1/min")?;
    /// let checks = ["ann", "bob", "ann"].map(|user| Check::new(&api, user));
    /// let allowed = limiter.check_each(&checks)?.into_iter().map(|decision| decision.allowed);
    /// assert!(allowed.eq([true, true, false]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_each(&self, checks: &[Check<'_>]) -> Result<Vec<Decision>, RequestError> {
        let mut decisions = Vec::new();
        self.check_each_into(checks, &mut decisions)?;
        Ok(decisions)
    }

    /// Appends the decisions of [`check_each`](Self::check_each) to a vector, whose memory can be used
    /// again.
    ///
    /// # Errors
    /// As there; nothing is appended.
    pub fn check_each_into(
        &self,
        checks: &[Check<'_>],
        decisions: &mut Vec<Decision>,
    ) -> Result<(), RequestError> {
        for check in checks {
            Key::new(check.key)?;
        }
        self.check_each_valid(checks, decisions);
        Ok(())
    }

    fn check_each_valid(&self, checks: &[Check<'_>], decisions: &mut Vec<Decision>) {
        #[cfg(feature = "tracing")]
        let before = decisions.len();
        let listed = |check: &Check<'_>| check.policy.listed(check.key);
        for mut unlisted in checks.chunk_by(|_, next| listed(next).is_none()) {
            if let [first, rest @ ..] = unlisted
                && let Some(listed) = listed(first)
            {
                decisions.push(Decision::from_list(listed, self.now()));
                unlisted = rest;
            }
            self.0.store.check_each(unlisted, random_id, decisions);
        }
        #[cfg(feature = "tracing")]
        for (check, decision) in checks.iter().zip(&decisions[before..]) {
            crate::events::record(check.policy, decision);
        }
    }

    /// Executes independent requests, in order.
    pub(crate) fn decide_batch(
        &self,
        requests: &[Request<'_>],
    ) -> Vec<Result<Answer, RequestError>> {
        let mut answers = Vec::with_capacity(requests.len());
        let mut rest = requests;
        while let [first, after @ ..] = rest {
            let checks: Vec<_> = rest.iter().map_while(plain_check).collect();
            if checks.is_empty() {
                answers.push(self.decide(first));
                rest = after;
                continue;
            }
            let mut decisions = Vec::new();
            self.check_each_valid(&checks, &mut decisions);
            let decided = decisions.into_iter();
            answers.extend(decided.map(|decision| Ok(Answer { decisions: vec![decision] })));
            rest = &rest[checks.len()..];
        }
        answers
    }
}

/// Returns the check of a request that [`MemoryLimiter::check_each`] can decide.
fn plain_check<'a>(request: &Request<'a>) -> Option<Check<'a>> {
    let Request { operation: Operation::Check { lease: None }, checks: [check], request_id: None } =
        *request
    else {
        return None;
    };
    let is_valid = check.policy.is_single_limit() && Key::new(check.key).is_ok();
    is_valid.then_some(*check)
}

#[cfg(test)]
mod tests {
    use tollgate_algorithms::{Policy, Reason};
    use tollgate_state::ManualClock;

    use super::*;

    #[test]
    fn each_check_is_decided_on_its_own() {
        let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
        let user: Policy = "1/min".parse().unwrap();
        let user = user.with_deny_list(["bob"].into_iter().collect());
        let other: Policy = "1/h".parse().unwrap();
        let checks =
            [(&user, "bob"), (&user, "ann"), (&other, "bob"), (&user, "bob"), (&user, "ann")];
        let checks = checks.map(|(policy, key)| Check::new(policy, key));
        let decisions = limiter.check_each(&checks).unwrap();
        let allowed: Vec<_> = decisions.iter().map(|decision| decision.allowed).collect();
        assert_eq!(allowed, [false, true, true, false, false]);
        assert_eq!(decisions[3].reason, Reason::DenyList);
        let invalid = [Check::new(&other, "new"), Check::new(&other, "")];
        assert_eq!(limiter.check_each(&invalid), Err(RequestError::EmptyKey));
        assert!(limiter.check(&other, "new").allowed, "nothing was charged");
    }
}

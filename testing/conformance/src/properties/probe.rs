//! I-RETRY and I-REMAIN: what an answer says of later is what happens then, and not before.

use proptest::prelude::*;
use tollgate_core::{Micros, Operation, Policy, Reason, Timestamp};

use super::play::{CHECK, ask, asked, count, only, play, requests, story};
use super::player::{Player, START, TestRequest, shifted};
use super::runner::{Coverage, FailureReason, Plan, Violation, run};
use super::strategies::policies;
use super::trace::{check_steps, steps};
use crate::model::Expected;
use crate::system::SystemUnderTest;

const KEY: &[u8] = b"k\0";

/// What was asked so far, to be asked again before each probe, as a probe leaves a trace.
struct Probe<'a, S> {
    system: &'a mut S,
    policy: &'a Policy,
    asked: &'a [TestRequest],
    now: Timestamp,
}

impl<S: SystemUnderTest> Probe<'_, S> {
    fn at(
        &mut self,
        after: u64,
        operation: Operation,
        cost: u64,
    ) -> Result<Expected, FailureReason> {
        play(self.system, self.asked);
        let time = self.now.saturating_add(Micros::new(after));
        only(ask(self.system, &asked(time, operation, self.policy, KEY, cost)))
    }

    fn why(&self, what: &str) -> FailureReason {
        format!("{}then at {}: {what}", story(self.asked), self.now)
    }

    /// Denied up to the microsecond before the retry, admitted at it. The denial itself, which
    /// may count, has been asked.
    fn retry(&mut self, denied: &Expected, cost: u64, part: u64) -> Result<(), FailureReason> {
        if denied.never {
            let later = self.at(400 * 86_400_000_000, CHECK, cost)?;
            return if later.never { Ok(()) } else { Err(self.why("never, but later it passed")) };
        }
        let Some(retry) = denied.retry_after.map(Micros::get) else {
            return Err(self.why(&format!("denied without a retry: {denied:?}")));
        };
        if self.now.saturating_add(Micros::new(retry)) == Timestamp::MAX {
            return Ok(()); // After there is no more time.
        }
        for before in [retry - 1, (retry / 1_000 * part).min(retry - 1)] {
            if self.at(before, CHECK, cost)?.allowed {
                return Err(self.why(&format!("{cost} passed before its retry of {retry} us")));
            }
        }
        let then = self.at(retry, CHECK, cost)?;
        if then.allowed {
            return Ok(());
        }
        Err(self.why(&format!("{cost} did not pass at its retry of {retry} us: {then:?}")))
    }

    /// What remains passes, and one more does not.
    fn remaining(&mut self, peek: &Expected, seen: &mut Coverage) -> Result<(), FailureReason> {
        let there = peek.remaining;
        seen.count("remaining");
        if there > 0 && !self.at(0, CHECK, there)?.allowed {
            return Err(self.why(&format!("{there} remain, but do not pass")));
        }
        if self.at(0, CHECK, there + 1)?.allowed {
            return Err(self.why(&format!("{there} remain, but one more passes")));
        }
        self.reset(peek, seen)
    }

    /// At the reset all of it is there, and not before.
    fn reset(&mut self, peek: &Expected, seen: &mut Coverage) -> Result<(), FailureReason> {
        let Some(reset) = peek.reset_after.map(Micros::get) else { return Ok(()) };
        if self.now.saturating_add(Micros::new(reset)) == Timestamp::MAX {
            return Ok(()); // Until after there is no more time.
        }
        let then = self.at(reset, Operation::Peek, 0)?;
        let full = |expected: &Expected| {
            expected
                .limits
                .iter()
                .all(|limit| limit.remaining == limit.capacity && limit.reset_after == Micros::ZERO)
        };
        if !full(&then) || then.reset_after != Some(Micros::ZERO) {
            return Err(self.why(&format!("not as unknown at its reset of {reset} us: {then:?}")));
        }
        if reset > 0 {
            seen.count("resets");
            let before = self.at(reset - 1, Operation::Peek, 0)?;
            if before.reset_after != Some(Micros::new(1)) {
                return Err(self.why(&format!("reset already before {reset} us: {before:?}")));
            }
        }
        Ok(())
    }
}

/// After any trace of one key, at any time: a denied cost is denied until its retry and admitted
/// at it; what remains is admitted and one more is not; at the reset the key is as unknown.
///
/// # Errors
/// The least trace after which an answer was not exact.
pub fn tells_the_future(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let later = prop_oneof![3 => Just(0_i64), 1 => 0_i64..100_000, 1 => 0_i64..100_000_000];
    let traces = prop_oneof![steps(1, 1, false), check_steps(1, 1, false)];
    let cases = (
        policies("p"),
        traces,
        later,
        (prop_oneof![4 => Just(1_u64), 1 => 1_u64..20], 0_u64..1_000),
    );
    run(plan, &cases, |(policy, steps, later, (more, part)), seen| {
        if policy.is_shadow() {
            return Ok(());
        }
        let policies = [policy];
        let mut asked = requests(&policies, Player::at(START, false), &steps);
        let now = shifted(asked.last().map_or(START, |x| x.time), later);
        count(seen, &play(system, &asked));
        let mut probe = Probe { system, policy: &policies[0], asked: &asked, now };
        let peek = probe.at(0, Operation::Peek, 0)?;
        if peek.reason == Reason::Blocked {
            return Ok(());
        }
        probe.remaining(&peek, seen)?;
        let cost = peek.remaining + more;
        let peek = probe.at(0, Operation::Peek, cost)?;
        let denied = probe.at(0, CHECK, cost)?;
        if (peek.allowed, peek.retry_after) != (denied.allowed, denied.retry_after) {
            return Err(probe.why(&format!("a peek said {peek:?}, but a check {denied:?}")));
        }
        seen.count(if denied.never { "nevers" } else { "retries" });
        asked.push(super::play::asked(now, CHECK, &policies[0], KEY, cost));
        Probe { system, policy: &policies[0], asked: &asked, now }.retry(&denied, cost, part)
    })
}

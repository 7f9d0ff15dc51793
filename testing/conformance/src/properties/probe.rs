//! Retry times, reset times and remaining costs are exact.

use proptest::prelude::*;
use tollgate_algorithms::{Micros, Operation, Policy, Reason, Timestamp};

use super::play::{CHECK, build_trace, count, decide, describe, play, single_answer, single_check};
use super::player::{START, TestRequest, shifted};
use super::runner::{Coverage, FailureReason, Outcome, Plan, run};
use super::strategies::{policies, with_bans};
use super::trace::{check_steps, steps};
use crate::model::Expected;
use crate::system::SystemUnderTest;

const KEY: &[u8] = b"k\0";

/// A trace that is played again before each probe, because a probe changes the state.
struct Probe<'a, S> {
    system: &'a mut S,
    policy: &'a Policy,
    trace: &'a [TestRequest],
    now: Timestamp,
}

impl<S: SystemUnderTest> Probe<'_, S> {
    fn at(
        &mut self,
        after: u64,
        operation: Operation,
        cost: u64,
    ) -> Result<Expected, FailureReason> {
        play(self.system, self.trace);
        let time = self.now.saturating_add(Micros::new(after));
        single_answer(decide(self.system, &single_check(time, operation, self.policy, KEY, cost)))
    }

    fn why(&self, what: &str) -> FailureReason {
        format!("{}then at {}: {what}", describe(self.trace), self.now)
    }

    /// The cost is denied until the microsecond before its retry time and admitted at it. The trace
    /// includes the denial, which may be counted.
    fn retry(&mut self, denied: &Expected, cost: u64, part: u64) -> Result<(), FailureReason> {
        if denied.never {
            let later = self.at(400 * 86_400_000_000, CHECK, cost)?;
            return if later.never {
                Ok(())
            } else {
                Err(self.why("reported as never, but later admitted"))
            };
        }
        let Some(retry) = denied.retry_after.map(Micros::get) else {
            return Err(self.why(&format!("denied without a retry: {denied:?}")));
        };
        if self.now.saturating_add(Micros::new(retry)) == Timestamp::MAX {
            return Ok(()); // The exact time is not representable.
        }
        for before in [retry - 1, (retry / 1_000 * part).min(retry - 1)] {
            if self.at(before, CHECK, cost)?.allowed {
                return Err(
                    self.why(&format!("cost {cost} is admitted before its retry of {retry} us"))
                );
            }
        }
        let then = self.at(retry, CHECK, cost)?;
        if then.allowed {
            return Ok(());
        }
        Err(self.why(&format!("cost {cost} is denied at its retry of {retry} us: {then:?}")))
    }

    /// The remaining cost is admitted, and one more is not.
    fn remaining(&mut self, peek: &Expected, coverage: &mut Coverage) -> Result<(), FailureReason> {
        let remaining = peek.remaining;
        coverage.count("remaining");
        if remaining > 0 && !self.at(0, CHECK, remaining)?.allowed {
            return Err(self.why(&format!("{remaining} remain, but are denied")));
        }
        if self.at(0, CHECK, remaining + 1)?.allowed {
            return Err(self.why(&format!("{remaining} remain, but one more is admitted")));
        }
        self.reset(peek, coverage)
    }

    /// The whole capacity remains at the reset time, and not before.
    fn reset(&mut self, peek: &Expected, coverage: &mut Coverage) -> Result<(), FailureReason> {
        let Some(reset) = peek.reset_after.map(Micros::get) else { return Ok(()) };
        if self.now.saturating_add(Micros::new(reset)) == Timestamp::MAX {
            return Ok(()); // The exact time is not representable.
        }
        let then = self.at(reset, Operation::Peek, 0)?;
        let full = |expected: &Expected| {
            expected
                .limits
                .iter()
                .all(|limit| limit.remaining == limit.capacity && limit.reset_after == Micros::ZERO)
        };
        if !full(&then) || then.reset_after != Some(Micros::ZERO) {
            return Err(self.why(&format!("not recovered at its reset of {reset} us: {then:?}")));
        }
        if reset > 0 {
            coverage.count("resets");
            let before = self.at(reset - 1, Operation::Peek, 0)?;
            if before.reset_after != Some(Micros::new(1)) {
                return Err(
                    self.why(&format!("recovered before its reset of {reset} us: {before:?}"))
                );
            }
        }
        Ok(())
    }
}

/// After any trace of one key, at any time: a denied cost is denied until its retry time and then
/// admitted; the remaining cost is admitted and one more is not; at its reset time the key has
/// recovered.
pub fn predictions_are_exact(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let later = prop_oneof![3 => Just(0_i64), 1 => 0_i64..100_000, 1 => 0_i64..100_000_000];
    let traces = prop_oneof![steps(1, 1, false), check_steps(1, 1, false)];
    let plain = policies("p").prop_map(|policy| vec![policy]).boxed();
    let cases = (
        prop_oneof![2 => plain.clone(), 1 => with_bans(plain)],
        traces,
        later,
        (prop_oneof![4 => Just(1_u64), 1 => 1_u64..20], 0_u64..1_000),
    );
    run(plan, &cases, |(policies, steps, later, (more, part)), coverage| {
        if policies[0].is_shadow() {
            return Ok(());
        }
        let mut trace = build_trace(&policies, &steps, false);
        let now = shifted(trace.last().map_or(START, |request| request.time), later);
        count(coverage, &play(system, &trace));
        let mut probe = Probe { system, policy: &policies[0], trace: &trace, now };
        let peek = probe.at(0, Operation::Peek, 0)?;
        if matches!(peek.reason, Reason::Blocked | Reason::Banned) {
            return Ok(());
        }
        probe.remaining(&peek, coverage)?;
        let cost = peek.remaining + more;
        let peek = probe.at(0, Operation::Peek, cost)?;
        let denied = probe.at(0, CHECK, cost)?;
        if (peek.allowed, peek.retry_after) != (denied.allowed, denied.retry_after) {
            return Err(probe.why(&format!("a peek returns {peek:?}, but a check {denied:?}")));
        }
        coverage.count(if denied.never { "nevers" } else { "retries" });
        trace.push(single_check(now, CHECK, &policies[0], KEY, cost));
        Probe { system, policy: &policies[0], trace: &trace, now }.retry(&denied, cost, part)
    })
}

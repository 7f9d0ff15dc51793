//! While a policy changes, it admits at most what the larger version allows; after the change, at
//! most what the new version allows.

use proptest::prelude::*;
use tollgate_algorithms::{Limit, Policy};

use super::bound::{admitted, check_spans};
use super::play::{describe, play_steps};
use super::runner::{Outcome, Plan, run};
use super::strategies::{limits, renumbered};
use super::trace::check_steps;
use crate::system::SystemUnderTest;

/// Policies with two versions of a limit, and a limit with the larger of each of their numbers.
fn two_versions() -> BoxedStrategy<([Policy; 2], Limit)> {
    let numbers = || (1_u64..20, 1_u64..20);
    (limits(), numbers(), numbers())
        .prop_filter_map("each version is valid", |(limit, a, b)| {
            let version = |(count, capacity): (u64, u64)| -> Option<Limit> {
                renumbered(*limit.spec(), count, capacity, false).build().ok()
            };
            let policy = |numbers| Policy::new("p", [version(numbers)?]).ok();
            Some(([policy(a)?, policy(b)?], version((a.0.max(b.0), a.1.max(b.1)))?))
        })
        .boxed()
}

/// Two processes with two versions of a limit that check one key alternately admit in no span more
/// than the larger version; if one is faster and the other has the larger capacity, no more than a
/// limit with both.
pub fn two_versions_admit_at_most_the_larger(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Outcome {
    let cases = (two_versions(), check_steps(2, 1, false));
    run(plan, &cases, |((policies, larger), steps), coverage| {
        let (trace, answers) = play_steps(system, &policies, &steps, false, coverage);
        check_spans(&larger, &admitted(&trace, &answers)).map_err(|error| describe(&trace) + &error)
    })
}

/// After a policy has changed, no span admits more than the new version.
pub fn changed_policy_applies_at_once(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (two_versions(), check_steps(2, 1, false));
    run(plan, &cases, |((policies, _), mut steps), coverage| {
        steps.sort_by_key(|step| step.checks[0].policy);
        let new = steps.partition_point(|step| step.checks[0].policy == 0);
        let (trace, answers) = play_steps(system, &policies, &steps, false, coverage);
        check_spans(&policies[1].limits()[0], &admitted(&trace[new..], &answers[new..]))
            .map_err(|error| describe(&trace) + &error)
    })
}

//! I-DENY, I-PEEK and isolation: what must leave no trace, leaves none.

use tollgate_core::{Cost, Id, Operation, Policy};

use super::play::{Answered, count, play, requests, same};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, Plan, Violation, run};
use super::strategies::policies;
use super::trace::steps;
use crate::system::SystemUnderTest;

fn counts_denied(policies: &[Policy]) -> bool {
    policies.iter().flat_map(|policy| policy.limits()).any(|limit| limit.spec().count_denied)
}

/// Requests that were denied by policies that do not count them could as well not have been
/// made.
///
/// # Errors
/// The least trace in which something else is answered without them.
pub fn denials_leave_no_trace(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(2, 2, false));
    run(plan, &cases, |((a, b), steps), seen| {
        let policies = [a, b];
        if counts_denied(&policies) || policies.iter().any(Policy::is_shadow) {
            return Ok(());
        }
        let asked = requests(&policies, Player::at(START, false), &steps);
        let answers = play(system, &asked);
        count(seen, &answers);
        let denied = |answered: &Answered| match answered {
            Ok(value) => value.iter().any(|i| !i.allowed),
            Err(_) => true,
        };
        let both = asked.iter().cloned().zip(answers);
        let (asked, expected): (Vec<TestRequest>, Vec<Answered>) =
            both.filter(|(_, answer)| !denied(answer)).unzip();
        same(&asked, &expected, &play(system, &asked))
    })
}

/// Peeks and checks of nothing may come between any two requests.
///
/// # Errors
/// The least trace in which something else is answered with them.
pub fn peeks_leave_no_trace(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(2, 2, false), 0_u64..30);
    run(plan, &cases, |((a, b), steps, cost), seen| {
        let asked = requests(&[a, b], Player::at(START, false), &steps);
        let expected = play(system, &asked);
        count(seen, &expected);
        let looks = |x: &TestRequest| {
            let peek = TestRequest { operation: Operation::Peek, request_id: None, ..x.clone() };
            let mut greater = peek.clone();
            greater
                .checks
                .iter_mut()
                .for_each(|check| check.2 = Cost::new(cost).unwrap_or_default());
            let lease = Some(Id::from_u128(u128::MAX));
            let mut nothing = TestRequest { operation: Operation::Check { lease }, ..peek.clone() };
            nothing.checks.iter_mut().for_each(|check| check.2 = Cost::ZERO);
            [peek, greater, nothing, x.clone()]
        };
        let with_looks: Vec<TestRequest> = asked.iter().flat_map(looks).collect();
        let found = play(system, &with_looks);
        same(&asked, &expected, found.iter().skip(3).step_by(4))
    })
}

/// What others do to other keys, and to the same key under another policy, is nothing to a key.
///
/// # Errors
/// The least trace in which something else is answered beside others.
pub fn keys_are_alone(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(1, 1, false), steps(2, 3, false));
    run(plan, &cases, |((a, b), mine, theirs), seen| {
        let policies = [a, b];
        let asked = requests(&policies, Player::at(START, false), &mine);
        let expected = play(system, &asked);
        count(seen, &expected);
        let mut others = requests(&policies, Player::at(START, false), &theirs);
        for other in &mut others {
            other.request_id = None;
            for (policy, key, _) in &mut other.checks {
                if policy.name() == "p0" && *key == [b'k', 0] {
                    key.push(0);
                }
            }
        }
        let mut mixed = Vec::new();
        for (index, value) in asked.iter().enumerate() {
            let other = others.get(index % others.len().max(1)).cloned();
            mixed.extend(other.map(|other| TestRequest { time: value.time, ..other }));
            mixed.push(value.clone());
        }
        let found = play(system, &mixed);
        same(&asked, &expected, found.iter().skip(1).step_by(2))
    })
}

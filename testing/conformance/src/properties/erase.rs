//! Denials, peeks and requests for other keys leave no trace.

use tollgate_core::{Cost, Id, Operation, Policy};

use super::play::{Response, build_trace, count, expect_equal, play};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, Plan, Violation, run};
use super::strategies::policies;
use super::trace::steps;
use crate::system::SystemUnderTest;

fn counts_denied(policies: &[Policy]) -> bool {
    policies.iter().flat_map(|policy| policy.limits()).any(|limit| limit.spec().count_denied)
}

/// Without the requests that were denied by policies that do not count denials, the other answers
/// are the same.
///
/// # Errors
/// The smallest trace with a different answer.
pub fn denials_leave_no_trace(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(2, 2, false));
    run(plan, &cases, |((a, b), steps), coverage| {
        let policies = [a, b];
        if counts_denied(&policies) || policies.iter().any(Policy::is_shadow) {
            return Ok(());
        }
        let trace = build_trace(&policies, Player::at(START, false), &steps);
        let answers = play(system, &trace);
        count(coverage, &answers);
        let denied = |response: &Response| match response {
            Ok(decisions) => decisions.iter().any(|decision| !decision.allowed),
            Err(_) => true,
        };
        let both = trace.iter().cloned().zip(answers);
        let (trace, expected): (Vec<TestRequest>, Vec<Response>) =
            both.filter(|(_, answer)| !denied(answer)).unzip();
        expect_equal(&trace, &expected, &play(system, &trace))
    })
}

/// Peeks and checks of cost 0 between the requests do not change the answers.
///
/// # Errors
/// The smallest trace with a different answer.
pub fn peeks_leave_no_trace(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(2, 2, false), 0_u64..30);
    run(plan, &cases, |((a, b), steps, cost), coverage| {
        let trace = build_trace(&[a, b], Player::at(START, false), &steps);
        let expected = play(system, &trace);
        count(coverage, &expected);
        let with_peeks = |request: &TestRequest| {
            let peek =
                TestRequest { operation: Operation::Peek, request_id: None, ..request.clone() };
            let mut greater = peek.clone();
            greater
                .checks
                .iter_mut()
                .for_each(|check| check.2 = Cost::new(cost).unwrap_or_default());
            let lease = Some(Id::from_u128(u128::MAX));
            let mut nothing = TestRequest { operation: Operation::Check { lease }, ..peek.clone() };
            nothing.checks.iter_mut().for_each(|check| check.2 = Cost::ZERO);
            [peek, greater, nothing, request.clone()]
        };
        let longer: Vec<TestRequest> = trace.iter().flat_map(with_peeks).collect();
        let found = play(system, &longer);
        expect_equal(&trace, &expected, found.iter().skip(3).step_by(4))
    })
}

/// Requests for other keys, and for the same key under another policy, do not change the answers.
///
/// # Errors
/// The smallest trace with a different answer.
pub fn keys_are_independent(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(1, 1, false), steps(2, 3, false));
    run(plan, &cases, |((a, b), mine, theirs), coverage| {
        let policies = [a, b];
        let trace = build_trace(&policies, Player::at(START, false), &mine);
        let expected = play(system, &trace);
        count(coverage, &expected);
        let mut others = build_trace(&policies, Player::at(START, false), &theirs);
        for other in &mut others {
            other.request_id = None;
            for (policy, key, _) in &mut other.checks {
                if policy.name() == "p0" && *key == [b'k', 0] {
                    key.push(0);
                }
            }
        }
        let mut mixed = Vec::new();
        for (index, request) in trace.iter().enumerate() {
            let other = others.get(index % others.len().max(1)).cloned();
            mixed.extend(other.map(|other| TestRequest { time: request.time, ..other }));
            mixed.push(request.clone());
        }
        let found = play(system, &mixed);
        expect_equal(&trace, &expected, found.iter().skip(1).step_by(2))
    })
}

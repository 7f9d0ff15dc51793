//! Denials, peeks and requests for other keys leave no trace.

use tollgate_algorithms::{Cost, Id, Operation, Policy};

use super::play::{Response, build_trace, expect_equal, play, play_steps};
use super::player::TestRequest;
use super::runner::{Outcome, Plan, run};
use super::strategies::several_policies;
use super::trace::steps;
use crate::system::SystemUnderTest;

fn counts_denied(policies: &[Policy]) -> bool {
    policies.iter().flat_map(|policy| policy.limits()).any(|limit| limit.spec().count_denied)
}

/// Without the requests that were denied by policies that do not count denials, the other answers
/// are the same.
pub fn denials_leave_no_trace(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (several_policies::<2>(), steps(2, 2, false));
    run(plan, &cases, |(policies, steps), coverage| {
        if counts_denied(&policies) || policies.iter().any(Policy::is_shadow) {
            return Ok(());
        }
        let (trace, answers) = play_steps(system, &policies, &steps, false, coverage);
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
pub fn peeks_leave_no_trace(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (several_policies::<2>(), steps(2, 2, false), 0_u64..30);
    run(plan, &cases, |(policies, steps, cost), coverage| {
        let (trace, expected) = play_steps(system, &policies, &steps, false, coverage);
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
pub fn keys_are_independent(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (several_policies::<2>(), steps(1, 1, false), steps(2, 3, false));
    run(plan, &cases, |(policies, mine, theirs), coverage| {
        let (trace, expected) = play_steps(system, &policies, &mine, false, coverage);
        let mut others = build_trace(&policies, &theirs, false);
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

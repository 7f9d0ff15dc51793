//! Every field of every decision equals that of the model.

use proptest::prelude::*;
use tollgate_algorithms::{Policy, Reason, Timestamp};

use super::play::{decide, decide_all, differences};
use super::player::{Player, START};
use super::runner::{Coverage, FailureReason, Outcome, Plan, run};
use super::strategies::{several_policies, versions, with_bans};
use super::trace::{Step, settlement_steps, steps};
use crate::system::{ModelSystem, SystemUnderTest};

/// The system and the model answer a trace over three policies and two keys equally.
pub fn equals_model(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    equals(system, plan, false)
}

/// The same with a clock that steps backwards and forwards, by a microsecond to ten years.
pub fn equals_model_with_clock_steps(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    equals(system, plan, true)
}

fn equals(system: &mut impl SystemUnderTest, plan: Plan, backwards: bool) -> Outcome {
    let starts = prop_oneof![
        8 => Just(START),
        1 => Just(Timestamp::EPOCH),
        1 => Just(Timestamp::from_micros(8_400_000_000_000_001)),
    ];
    let cases = (several_policies::<3>(), starts, steps(3, 2, backwards));
    run(plan, &cases, |(policies, start, steps), coverage| {
        play_both(system, &policies, Player::at(start, backwards), &steps, coverage)
    })
}

/// The same for three versions of one policy that are used alternately, or for more versions than a
/// key keeps state of.
pub fn equals_model_through_policy_changes(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Outcome {
    let few = (versions(3), steps(3, 2, false));
    let many = (versions(12), steps(12, 1, false));
    run(plan, &prop_oneof![5 => few, 1 => many], |(versions, steps), coverage| {
        play_both(system, &versions, Player::at(START, false), &steps, coverage)
    })
}

/// The same for checks that are settled, over policies that change or do not change.
pub fn equals_model_with_settlements(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let fixed = several_policies::<3>().prop_map(|policies| policies.to_vec());
    let clock = prop::bool::weighted(0.2);
    let cases = (prop_oneof![3 => fixed, 1 => versions(3)], clock).prop_flat_map(
        |(policies, backwards)| {
            (Just(policies), Just(backwards), settlement_steps(3, 2, backwards))
        },
    );
    run(plan, &cases, |(policies, backwards, steps), coverage| {
        play_both(system, &policies, Player::at(START, backwards), &steps, coverage)
    })
}

/// The same for policies that ban keys: over several policies or versions of one, with a clock that may
/// step backwards, for checks that may be settled.
pub fn equals_model_with_bans(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let fixed = several_policies::<3>().prop_map(|policies| policies.to_vec()).boxed();
    let policies = prop_oneof![3 => with_bans(fixed), 1 => with_bans(versions(3))];
    let cases = (policies, prop::bool::weighted(0.2), prop::bool::weighted(0.2)).prop_flat_map(
        |(policies, backwards, settles)| {
            let steps = match settles {
                true => settlement_steps(3, 2, backwards),
                false => steps(3, 2, backwards),
            };
            (Just(policies), Just(backwards), steps)
        },
    );
    run(plan, &cases, |(policies, backwards, steps), coverage| {
        play_both(system, &policies, Player::at(START, backwards), &steps, coverage)
    })
}

/// The same for batches of requests, which are decided in order at one time.
pub fn equals_model_in_batches(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let steps = prop_oneof![3 => steps(3, 2, false), 1 => settlement_steps(3, 2, false)];
    let policies = several_policies::<3>().prop_map(|policies| policies.to_vec()).boxed();
    let policies = prop_oneof![2 => policies.clone(), 1 => with_bans(policies)];
    let cases = (policies, steps, 1..16_usize);
    run(plan, &cases, |(policies, steps, batch), coverage| {
        play_batches(system, &policies, &steps, batch, coverage)
    })
}

fn play_batches(
    system: &mut impl SystemUnderTest,
    policies: &[Policy],
    steps: &[Step],
    batch: usize,
    coverage: &mut Coverage,
) -> Result<(), FailureReason> {
    system.reset();
    let (mut model, mut player) = (ModelSystem::default(), Player::at(START, false));
    let mut story = format!("requests in this order, in batches of {batch}:\n");
    for steps in steps.chunks(batch) {
        let (mut all, mut expected, mut time) = (Vec::new(), Vec::new(), None);
        for step in steps {
            let mut request = player.next(policies, step);
            request.time = *time.get_or_insert(request.time);
            if request.with(|borrowed| model.is_undefined(borrowed, request.time)) {
                coverage.count("undefined");
                return Ok(());
            }
            let answer = decide(&mut model, &request);
            if let Ok(answer) = &answer {
                coverage.answer(answer);
                player.learn(answer);
            }
            story += &format!("{request}\n");
            all.push(request);
            expected.push(answer);
        }
        coverage.count("batches");
        let found = decide_all(system, &all);
        if found.len() != expected.len() {
            let (expected, found) = (expected.len(), found.len());
            return Err(format!("{story}expected {expected} responses, found {found}"));
        }
        for (expected, found) in expected.iter().zip(found) {
            let differences = differences(expected, &found);
            if !differences.is_empty() {
                return Err(format!("{story}{}", differences.join("\n")));
            }
        }
    }
    Ok(())
}

fn play_both(
    system: &mut impl SystemUnderTest,
    policies: &[Policy],
    mut player: Player,
    steps: &[Step],
    coverage: &mut Coverage,
) -> Result<(), FailureReason> {
    system.reset();
    let mut model = ModelSystem::default();
    let mut story = "requests in this order:\n".to_owned();
    for step in steps {
        let request = player.next(policies, step);
        if request.with(|borrowed| model.is_undefined(borrowed, request.time)) {
            coverage.count("undefined");
            return Ok(());
        }
        let expected = decide(&mut model, &request);
        let found = decide(system, &request);
        let differences = differences(&expected, &found);
        story += &format!("{request}\n");
        if !differences.is_empty() {
            return Err(format!("{story}{}", differences.join("\n")));
        }
        match expected {
            Ok(answer) => {
                coverage.answer(&answer);
                if answer.iter().any(|decision| decision.reason == Reason::Banned) {
                    coverage.count("banned");
                }
                coverage.count(request.operation.as_str());
                player.learn(&answer);
            }
            Err(_) => coverage.rejected += 1,
        }
    }
    Ok(())
}

//! I-MODEL: every field of every decision is the model's, whatever is asked.

use proptest::prelude::*;
use tollgate_core::{Policy, Timestamp};

use super::play::{ask, ask_all, differences};
use super::player::{Player, START};
use super::runner::{Coverage, FailureReason, Plan, Violation, run};
use super::strategies::{forms, policies};
use super::trace::{Step, steps};
use crate::system::{ModelSystem, SystemUnderTest};

/// Any trace over three policies and two keys gets from the system what the model says.
///
/// # Errors
/// The least trace on which they differ.
pub fn equals_model(system: &mut impl SystemUnderTest, plan: Plan) -> Result<Coverage, Violation> {
    equals(system, plan, false)
}

/// The same with a clock that steps back and forth, by a microsecond or by ten years.
///
/// # Errors
/// The least trace on which they differ.
pub fn equals_model_with_a_clock_that_steps(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    equals(system, plan, true)
}

fn equals(
    system: &mut impl SystemUnderTest,
    plan: Plan,
    backwards: bool,
) -> Result<Coverage, Violation> {
    let starts = prop_oneof![
        8 => Just(START),
        1 => Just(Timestamp::EPOCH),
        1 => Just(Timestamp::from_micros(8_400_000_000_000_001)),
    ];
    let three = (policies("p0"), policies("p1"), policies("p2"));
    let cases = (three, starts, steps(3, 2, backwards));
    run(plan, &cases, |((a, b, c), start, steps), seen| {
        both_play(system, &[a, b, c], Player::at(start, backwards), &steps, seen)
    })
}

/// The same for three forms of one policy, which all act on its keys in turn, or for more than a
/// key keeps the state of.
///
/// # Errors
/// The least trace on which they differ.
pub fn equals_model_through_changes(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let few = (forms(3), steps(3, 2, false));
    let many = (forms(12), steps(12, 1, false));
    run(plan, &prop_oneof![5 => few, 1 => many], |(forms, steps), seen| {
        both_play(system, &forms, Player::at(START, false), &steps, seen)
    })
}

/// The same for requests that are asked at once: they are decided in order, at one time.
///
/// # Errors
/// The least trace on which they differ.
pub fn equals_model_in_batches(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let three = (policies("p0"), policies("p1"), policies("p2"));
    run(plan, &(three, steps(3, 2, false), 1..16_usize), |((a, b, c), steps, batch), seen| {
        play_batches(system, &[a, b, c], &steps, batch, seen)
    })
}

fn play_batches(
    system: &mut impl SystemUnderTest,
    policies: &[Policy],
    steps: &[Step],
    batch: usize,
    seen: &mut Coverage,
) -> Result<(), FailureReason> {
    system.reset();
    let (mut model, mut player) = (ModelSystem::default(), Player::at(START, false));
    let mut story = format!("asked in this order, {batch} at once:\n");
    for steps in steps.chunks(batch) {
        let (mut all, mut expected, mut time) = (Vec::new(), Vec::new(), None);
        for step in steps {
            let mut asked = player.next(policies, step);
            asked.time = *time.get_or_insert(asked.time);
            if asked.with(|x| model.is_unsure(x, asked.time)) {
                seen.count("unsure");
                return Ok(());
            }
            let answer = ask(&mut model, &asked);
            if let Ok(answer) = &answer {
                seen.answer(answer);
                player.learn(answer);
            }
            story += &format!("{asked}\n");
            all.push(asked);
            expected.push(answer);
        }
        seen.count("batches");
        for (expected, found) in expected.iter().zip(ask_all(system, &all)) {
            let differences = differences(expected, &found);
            if !differences.is_empty() {
                return Err(format!("{story}{}", differences.join("\n")));
            }
        }
    }
    Ok(())
}

fn both_play(
    system: &mut impl SystemUnderTest,
    policies: &[Policy],
    mut player: Player,
    steps: &[Step],
    seen: &mut Coverage,
) -> Result<(), FailureReason> {
    system.reset();
    let mut model = ModelSystem::default();
    let mut story = "asked in this order:\n".to_owned();
    for step in steps {
        let asked = player.next(policies, step);
        if asked.with(|x| model.is_unsure(x, asked.time)) {
            seen.count("unsure");
            return Ok(());
        }
        let expected = ask(&mut model, &asked);
        let found = ask(system, &asked);
        let differences = differences(&expected, &found);
        story += &format!("{asked}\n");
        if !differences.is_empty() {
            return Err(format!("{story}{}", differences.join("\n")));
        }
        match expected {
            Ok(answer) => {
                seen.answer(&answer);
                seen.count(asked.operation.as_str());
                player.learn(&answer);
            }
            Err(_) => seen.refused += 1,
        }
    }
    Ok(())
}

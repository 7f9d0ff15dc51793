//! I-BOUND: what was admitted in any span of time is within the bound of design §3.2.

use tollgate_core::{Kind, Limit, Micros};

use super::play::{Answered, count, play, requests, story};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, FailureReason, Plan, Violation, run};
use super::strategies::single_policies;
use super::trace::check_steps;
use crate::model;
use crate::system::SystemUnderTest;

/// A cost that was admitted: when it was, when it acts, and how much it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    time: i128,
    departs: i128,
    cost: i128,
}

/// No span of any trace of checks of one key admits more than the limit's bound.
///
/// # Errors
/// The least trace that admits more.
pub fn keeps_its_bound(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    run(plan, &(single_policies("p"), check_steps(1, 1, false)), |(policy, steps), seen| {
        let policies = [policy];
        let asked = requests(&policies, Player::at(START, false), &steps);
        let answers = play(system, &asked);
        count(seen, &answers);
        let admitted = admitted(&asked, &answers);
        let limit = &policies[0].limits()[0];
        let holds = spans_within(limit, &admitted)
            .and_then(|()| one_window(limit, &admitted))
            .and_then(|()| spaced(limit, &admitted));
        holds.map_err(|error| story(&asked) + &error)
    })
}

pub(super) fn admitted(asked: &[TestRequest], answers: &[Answered]) -> Vec<Admitted> {
    let both = asked.iter().zip(answers);
    let each = both.filter_map(|(asked, answer)| {
        let decision = answer.as_ref().ok()?.first()?;
        let time = i128::from(asked.time.as_micros());
        let departs = time + i128::from(decision.delay.get());
        let cost = i128::from(decision.granted);
        // A lease that is asked for again is charged once.
        (cost > 0 && !decision.replayed).then_some(Admitted { time, departs, cost })
    });
    each.collect()
}

/// Checks every span from one charge to a later one.
pub(super) fn spans_within(limit: &Limit, admitted: &[Admitted]) -> Result<(), FailureReason> {
    for first in 0..admitted.len() {
        let mut sum = 0;
        for last in first..admitted.len() {
            sum += admitted[last].cost;
            let span = admitted[last].time - admitted[first].time;
            if !may_pass(limit, sum, span) {
                return Err(format!("{sum} passed within {span} us of {:?}", admitted[first]));
            }
        }
    }
    Ok(())
}

/// Whether so much may pass between two charges that are `span` apart, both of them included.
fn may_pass(limit: &Limit, sum: i128, span: i128) -> bool {
    let spec = limit.spec();
    let (count, window) = (i128::from(spec.count), i128::from(spec.window.get()));
    let capacity = i128::from(limit.capacity());
    let tick = i128::from(model::tick_of(limit.spec()).map_or(1, Micros::get));
    match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            let slack = if tick > 1 { 1 } else { 0 };
            sum * window <= (capacity + slack) * window + count * span
        }
        Kind::Fixed { .. } | Kind::FixedFromFirst => span >= window || sum <= 2 * count,
        // The span from the first charge to the last lies in one that is a little longer.
        Kind::Sliding if span < window => {
            let longer = span + tick;
            sum <= 2 * count && sum <= (count * (window + longer)).div_euclid(window) + 1
        }
        Kind::SlidingBy { precision, strict: false } => {
            span >= window - i128::from(precision.get()) || sum <= count
        }
        Kind::SlidingBy { .. } | Kind::Log | Kind::Concurrent => span >= window || sum <= count,
        _ => true,
    }
}

/// No fixed window holds more than its count. Those that begin with a charge are told apart as
/// they come.
fn one_window(limit: &Limit, admitted: &[Admitted]) -> Result<(), FailureReason> {
    let spec = limit.spec();
    let window = i128::from(spec.window.get());
    let aligned = match spec.kind {
        Kind::Fixed { offset } => Some(i128::from(offset.get())),
        Kind::FixedFromFirst => None,
        _ => return Ok(()),
    };
    let week = 7 * 86_400_000_000;
    let monday = if window % week == 0 { 4 * 86_400_000_000 } else { 0 };
    let (mut end, mut sum) = (i128::MIN, 0);
    for admitted in admitted {
        if admitted.time >= end {
            let start = match aligned {
                Some(offset) => {
                    admitted.time - (admitted.time - offset - monday).rem_euclid(window)
                }
                None => admitted.time,
            };
            (end, sum) = (start + window, 0);
        }
        sum += admitted.cost;
        if sum > i128::from(spec.count) {
            return Err(format!("{sum} in the window that ends at {end}"));
        }
    }
    Ok(())
}

/// What leaves a queue is spaced evenly, and no more wait than there are places.
fn spaced(limit: &Limit, admitted: &[Admitted]) -> Result<(), FailureReason> {
    let Kind::Queue { places } = limit.spec().kind else { return Ok(()) };
    let (count, window) = (i128::from(limit.spec().count), i128::from(limit.spec().window.get()));
    let tick = i128::from(model::tick_of(limit.spec()).map_or(1, Micros::get));
    let slack = if tick > 1 { tick } else { 0 } + 1;
    for (index, first) in admitted.iter().enumerate() {
        let mut before = 0;
        for pair in admitted[index..].windows(2) {
            before += pair[0].cost;
            if (pair[1].departs - first.departs + slack) * count < before * window {
                return Err(format!("{:?} departs too soon after {first:?}", pair[1]));
            }
        }
        let waiting = admitted[..=index].iter().filter(|admitted| admitted.departs > first.time);
        let units: i128 = waiting.map(|waiting| waiting.cost).sum();
        if units > i128::from(places) + 1 {
            return Err(format!("{units} wait at {}", first.time));
        }
    }
    Ok(())
}

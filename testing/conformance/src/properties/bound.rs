//! The cost that was admitted within any span of time is at most the bound of the limit.

use tollgate_algorithms::{Kind, Limit, Micros};

use super::play::{Response, describe, play_steps};
use super::player::TestRequest;
use super::runner::{FailureReason, Outcome, Plan, run};
use super::strategies::single_policies;
use super::trace::check_steps;
use crate::model;
use crate::system::SystemUnderTest;

/// An admitted cost: when it was charged, when it departs, and how much it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    time: i128,
    departs: i128,
    cost: i128,
}

/// In a trace of checks of one key, no span admits more than the bound of the limit.
pub fn admissions_stay_within_bound(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    run(plan, &(single_policies("p"), check_steps(1, 1, false)), |(policy, steps), coverage| {
        let policies = [policy];
        let (trace, answers) = play_steps(system, &policies, &steps, false, coverage);
        let admitted = admitted(&trace, &answers);
        let limit = &policies[0].limits()[0];
        let result = check_spans(limit, &admitted)
            .and_then(|()| check_windows(limit, &admitted))
            .and_then(|()| check_spacing(limit, &admitted));
        result.map_err(|error| describe(&trace) + &error)
    })
}

pub(super) fn admitted(trace: &[TestRequest], answers: &[Response]) -> Vec<Admitted> {
    let both = trace.iter().zip(answers);
    let each = both.filter_map(|(request, answer)| {
        let decision = answer.as_ref().ok()?.first()?;
        let time = i128::from(request.time.as_micros());
        let departs = time + i128::from(decision.delay.get());
        let cost = i128::from(decision.granted);
        // A lease that is requested again is charged once.
        (cost > 0 && !decision.replayed).then_some(Admitted { time, departs, cost })
    });
    each.collect()
}

/// Checks every span from one charge to a later one.
pub(super) fn check_spans(limit: &Limit, admitted: &[Admitted]) -> Result<(), FailureReason> {
    for first in 0..admitted.len() {
        let mut sum = 0;
        for last in first..admitted.len() {
            sum += admitted[last].cost;
            let span = admitted[last].time - admitted[first].time;
            if !is_allowed(limit, sum, span) {
                return Err(format!("{sum} admitted within {span} us of {:?}", admitted[first]));
            }
        }
    }
    Ok(())
}

/// Whether the limit allows this sum of two charges that are `span` apart and all charges between.
fn is_allowed(limit: &Limit, sum: i128, span: i128) -> bool {
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
        // The charges lie within a span that is one tick longer.
        Kind::Sliding => {
            let longer = span + tick;
            span >= window
                || (sum <= 2 * count && sum <= (count * (window + longer)).div_euclid(window) + 1)
        }
        Kind::SlidingBy { precision, strict: false } => {
            (span >= window || sum <= 2 * count)
                && (span >= window - i128::from(precision.get()) || sum <= count)
        }
        Kind::SlidingBy { .. } | Kind::Log | Kind::Concurrent => span >= window || sum <= count,
        _ => unreachable!("{:?} has no bound", spec.kind),
    }
}

/// No fixed window admits more than its count. A window that starts with a charge is derived from
/// the charges.
fn check_windows(limit: &Limit, admitted: &[Admitted]) -> Result<(), FailureReason> {
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

/// Departures from a queue are evenly spaced, and at most as many wait as there are places.
fn check_spacing(limit: &Limit, admitted: &[Admitted]) -> Result<(), FailureReason> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the checks accept a trace of charges, each a time and a departure in ms and a cost.
    fn accepts(limit: &str, charges: &[(i128, i128, i128)]) -> bool {
        let limit: Limit = limit.parse().unwrap();
        let admitted: Vec<_> = charges
            .iter()
            .map(|(time, departs, cost)| Admitted {
                time: time * 1_000,
                departs: departs * 1_000,
                cost: *cost,
            })
            .collect();
        let results =
            [check_spans, check_windows, check_spacing].map(|check| check(&limit, &admitted));
        results.iter().all(Result::is_ok)
    }

    #[test]
    fn one_charge_more_than_the_bound_is_an_error() {
        for (limit, within, above) in [
            ("2/s burst 3", vec![(0, 0, 3), (500, 500, 1)], (500, 500, 1)),
            ("2/s fixed", vec![(999, 999, 2), (1_000, 1_000, 2)], (1_500, 1_500, 1)),
            ("2/s fixed from-first", vec![(0, 0, 1), (900, 900, 1)], (999, 999, 1)),
            ("2/s log", vec![(0, 0, 1), (500, 500, 1)], (999, 999, 1)),
            ("2/s sliding", vec![(0, 0, 2), (500, 500, 1)], (500, 500, 2)),
            ("2/s sliding by 100ms", vec![(0, 0, 2), (900, 900, 2)], (950, 950, 1)),
            ("2/s sliding by 100ms", vec![(0, 0, 2)], (899, 899, 1)),
            ("2/s sliding by 100ms strict", vec![(0, 0, 2)], (999, 999, 1)),
            ("2 concurrent lease 1s", vec![(0, 0, 2)], (999, 999, 1)),
            // Departs less than half a second after the one before.
            ("2/s queue 2", vec![(0, 0, 1), (0, 500, 1)], (0, 900, 1)),
            // Waits behind three, where there are two places.
            ("2/s queue 2", vec![(0, 500, 1), (0, 1_000, 1), (0, 1_500, 1)], (0, 2_000, 1)),
        ] {
            assert!(accepts(limit, &within), "{limit}: {within:?}");
            let exceeding = [within, vec![above]].concat();
            assert!(!accepts(limit, &exceeding), "{limit}: {exceeding:?}");
        }
    }
}

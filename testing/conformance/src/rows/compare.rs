//! Holding a decision against what a row expects of it.

use tollgate_core::{Decision, Id, LimitDecision, Micros, Timestamp};
use tollgate_store::Answer;

use super::expected::{CheckExpectation, Expectation, Expected, Field};
use super::request::AskedCheck;

/// A field that is not what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) field: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// Which turn of how many.
pub(super) type Turn = (u32, u32);

/// Every field that differs.
pub(super) fn differences(
    checks: &[AskedCheck],
    expected: &Expected,
    answer: &Answer,
    turn: Turn,
) -> Vec<Difference> {
    if checks.len() != answer.decisions.len() {
        let (expected, got) = (checks.len().to_string(), answer.decisions.len().to_string());
        return vec![Difference { field: "decisions".into(), expected, got }];
    }
    let mut found = Vec::new();
    if let Expected::Several(whole, _) = expected {
        found.extend(fields("request: ", whole, turn, |field| of_answer(answer, field)));
    }
    let each = checks.iter().zip(expected.of_checks()).zip(&answer.decisions);
    for (number, ((check, expected), decision)) in each.enumerate() {
        let place =
            if checks.len() > 1 { format!("check {}: ", number + 1) } else { String::new() };
        found.extend(of_check(&place, check, expected, decision, turn));
    }
    found
}

fn of_check(
    place: &str,
    check: &AskedCheck,
    expected: &CheckExpectation,
    decision: &Decision,
    turn: Turn,
) -> Vec<Difference> {
    let written =
        |canonical: usize| check.policy.places.iter().position(|place| *place == canonical);
    let mut found = fields(place, &expected.fields, turn, |field| match field {
        Field::Binding => written(decision.binding).map_or(0, |x| x + 1).to_string(),
        field => of_decision(decision, field),
    });
    let limits = decision.limits();
    for (number, expected) in &expected.limits {
        let limit = check.policy.places.get(number - 1).and_then(|place| limits.get(*place));
        let shown = |field| limit.map_or("no such limit".into(), |limit| of_limit(limit, field));
        found.extend(fields(&format!("{place}limit {number}: "), expected, turn, shown));
    }
    found
}

fn fields(
    place: &str,
    expected: &[Expectation],
    (turn, turns): Turn,
    shown: impl Fn(Field) -> String,
) -> Vec<Difference> {
    let differs = |expectation: &Expectation| {
        let (expected, got) = (expectation.shown(turn, turns), shown(expectation.field));
        let field = format!("{place}{}", expectation.field.name());
        (expected != got).then_some(Difference { field, expected, got })
    };
    expected.iter().filter_map(differs).collect()
}

fn verdict(allowed: bool, never: bool) -> String {
    match (allowed, never) {
        (true, false) => "allowed",
        (false, false) => "denied",
        (false, true) => "never",
        (true, true) => "allowed and never",
    }
    .into()
}

fn span(it: Option<Micros>) -> String {
    it.map_or("none".into(), |i| i.to_string())
}

fn id(it: Option<Id>) -> String {
    it.map_or("none".into(), |i| i.to_string())
}

fn either(it: bool, yes: &str, no: &str) -> String {
    if it { yes } else { no }.into()
}

fn of_answer(answer: &Answer, field: Field) -> String {
    match field {
        Field::Retry => span(answer.retry_after()),
        _ => verdict(answer.allowed(), answer.never()),
    }
}

fn of_decision(decision: &Decision, field: Field) -> String {
    match field {
        Field::Verdict => verdict(decision.allowed, decision.never),
        Field::Changed => either(decision.changed, "changed", "unchanged"),
        Field::Capacity => decision.capacity.to_string(),
        Field::Remaining => decision.remaining.to_string(),
        Field::Retry => span(decision.retry_after),
        Field::Reset => span(decision.reset_after),
        Field::Delay => span(Some(decision.delay)),
        Field::Granted => decision.granted.to_string(),
        Field::Reason => decision.reason.as_str().into(),
        Field::Binding => decision.binding.to_string(),
        Field::Replayed => either(decision.replayed, "replayed", "not-replayed"),
        Field::Shadow => either(decision.shadow, "shadow", "not-shadow"),
        Field::Lease => id(decision.lease),
        Field::Reservation => id(decision.reservation),
    }
}

fn of_limit(limit: &LimitDecision, field: Field) -> String {
    match field {
        Field::Verdict => verdict(limit.allowed, limit.never),
        Field::Capacity => limit.capacity.to_string(),
        Field::Remaining => limit.remaining.to_string(),
        Field::Retry => span(limit.retry_after),
        Field::Reset => span(Some(limit.reset_after)),
        _ => "not a field of a limit".into(),
    }
}

/// What holds of every decision, whatever its row names: a row says little, and a wrong field
/// beside it would pass unseen.
pub(super) fn contradictions(answer: &Answer, now: Timestamp) -> Vec<Difference> {
    let wrong = |field: &str, expected: &str, got: String| {
        Some(Difference { field: field.into(), expected: expected.into(), got })
    };
    let of_one = |decision: &Decision| {
        if !decision.replayed && decision.time != now {
            return wrong("time", &now.to_string(), decision.time.to_string());
        }
        // A check that was admitted in a request that was not may have a retry: what count-denied
        // charged it holds after the answer.
        if (answer.allowed() || decision.never) && decision.retry_after.is_some() {
            return wrong("retry", "none", span(decision.retry_after));
        }
        if decision.allowed && decision.never {
            return wrong("verdict", "one of two", verdict(true, true));
        }
        let limits = decision.limits();
        let mut binding = limits.iter().filter(|limit| limit.binding);
        match (binding.next(), binding.next()) {
            (Some(binding), None) => against_limits(decision, binding, &limits),
            (first, _) => {
                wrong("binding limits", "1", if first.is_some() { "more" } else { "0" }.into())
            }
        }
    };
    answer.decisions.iter().filter_map(of_one).collect()
}

/// The policy's capacity is the binding limit's, and its remaining the least. In a shadow's answer
/// only the limits speak.
fn against_limits(
    decision: &Decision,
    binding: &LimitDecision,
    limits: &[LimitDecision],
) -> Option<Difference> {
    let least = limits.iter().map(|limit| limit.remaining).min().unwrap_or(0);
    let pairs = [
        ("capacity", binding.capacity, decision.capacity),
        ("remaining", least, decision.remaining),
    ];
    let differs = pairs.into_iter().find(|(_, expected, got)| expected != got && !decision.shadow);
    differs.map(|(field, expected, got)| Difference {
        field: field.into(),
        expected: expected.to_string(),
        got: got.to_string(),
    })
}

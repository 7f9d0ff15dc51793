//! Compares a decision with the expectation of a row.

use tollgate_algorithms::{Decision, LimitDecision, Timestamp};
use tollgate_state::Answer;

use super::expected::{CheckExpectation, Expectation, Expected, Field};
use super::request::TestCheck;

/// A field with an unexpected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) field: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// The index of a repetition, and the number of repetitions.
pub(super) type Repetition = (u32, u32);

/// The fields that differ.
pub(super) fn differences(
    checks: &[TestCheck],
    expected: &Expected,
    answer: &Answer,
    turn: Repetition,
) -> Vec<Difference> {
    if checks.len() != answer.decisions.len() {
        let (expected, got) = (checks.len().to_string(), answer.decisions.len().to_string());
        return vec![Difference { field: "decisions".into(), expected, got }];
    }
    let mut found = Vec::new();
    if let Expected::Several(whole, _) = expected {
        found.extend(fields("request: ", whole, turn, |field| answer_field(answer, field)));
    }
    let each = checks.iter().zip(expected.checks()).zip(&answer.decisions);
    for (number, ((check, expected), decision)) in each.enumerate() {
        let place =
            if checks.len() > 1 { format!("check {}: ", number + 1) } else { String::new() };
        found.extend(check_differences(&place, check, expected, decision, turn));
    }
    found
}

fn check_differences(
    place: &str,
    check: &TestCheck,
    expected: &CheckExpectation,
    decision: &Decision,
    turn: Repetition,
) -> Vec<Difference> {
    let position =
        |canonical: usize| check.policy.places.iter().position(|place| *place == canonical);
    let mut found = fields(place, &expected.fields, turn, |field| match field {
        Field::Binding => position(decision.binding).map_or(0, |index| index + 1).to_string(),
        field => decision_field(decision, field),
    });
    let limits = decision.limits();
    for (number, expected) in &expected.limits {
        let limit = check.policy.places.get(number - 1).and_then(|place| limits.get(*place));
        let shown = |field| limit.map_or("no such limit".into(), |limit| limit_field(limit, field));
        found.extend(fields(&format!("{place}limit {number}: "), expected, turn, shown));
    }
    found
}

fn fields(
    place: &str,
    expected: &[Expectation],
    (turn, turns): Repetition,
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

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or("none".into(), |value| value.to_string())
}

fn either(condition: bool, yes: &str, no: &str) -> String {
    if condition { yes } else { no }.into()
}

fn answer_field(answer: &Answer, field: Field) -> String {
    match field {
        Field::Retry => or_none(answer.retry_after()),
        _ => verdict(answer.allowed(), answer.never()),
    }
}

fn decision_field(decision: &Decision, field: Field) -> String {
    match field {
        Field::Verdict => verdict(decision.allowed, decision.never),
        Field::Changed => either(decision.changed, "changed", "unchanged"),
        Field::Capacity => decision.capacity.to_string(),
        Field::Remaining => decision.remaining.to_string(),
        Field::Retry => or_none(decision.retry_after),
        Field::Reset => or_none(decision.reset_after),
        Field::Delay => decision.delay.to_string(),
        Field::Granted => decision.granted.to_string(),
        Field::Reason => decision.reason.as_str().into(),
        Field::Binding => decision.binding.to_string(),
        Field::Replayed => either(decision.replayed, "replayed", "not-replayed"),
        Field::Shadow => either(decision.shadow, "shadow", "not-shadow"),
        Field::Lease => or_none(decision.lease),
        Field::Reservation => or_none(decision.reservation),
    }
}

fn limit_field(limit: &LimitDecision, field: Field) -> String {
    match field {
        Field::Verdict => verdict(limit.allowed, limit.never),
        Field::Capacity => limit.capacity.to_string(),
        Field::Remaining => limit.remaining.to_string(),
        Field::Retry => or_none(limit.retry_after),
        Field::Reset => limit.reset_after.to_string(),
        _ => "not a field of a limit".into(),
    }
}

/// Checks that apply to every decision. A row names few fields, and an error in another field would not
/// be found.
pub(super) fn contradictions(answer: &Answer, now: Timestamp) -> Vec<Difference> {
    let wrong = |field: &str, expected: &str, got: String| {
        Some(Difference { field: field.into(), expected: expected.into(), got })
    };
    let check = |decision: &Decision| {
        if !decision.replayed && decision.time != now {
            return wrong("time", &now.to_string(), decision.time.to_string());
        }
        // In a denied request an admitted check may have a retry time, if a count-denied limit charged it.
        if (answer.allowed() || decision.never) && decision.retry_after.is_some() {
            return wrong("retry", "none", or_none(decision.retry_after));
        }
        if decision.allowed && decision.never {
            return wrong("verdict", "allowed or never", verdict(true, true));
        }
        let limits = decision.limits();
        let mut binding = limits.iter().filter(|limit| limit.binding);
        match (binding.next(), binding.next()) {
            (Some(binding), None) => check_binding(decision, binding, &limits),
            (first, _) => {
                wrong("binding limits", "1", if first.is_some() { "more" } else { "0" }.into())
            }
        }
    };
    answer.decisions.iter().filter_map(check).collect()
}

/// The capacity of a policy is that of the binding limit, and its remaining cost the smallest of its
/// limits. A shadow policy reports neither.
fn check_binding(
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

//! The expectation of a row: fields and their values.

use tollgate_algorithms::{Id, Micros};

use super::request::id;
use super::spans::span;
use super::words::{Mistake, Words};

/// The expected answer to a request.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// An error whose message contains these words.
    Error(String),
    /// The decision about one check.
    One(CheckExpectation),
    /// Several checks: the request as a whole, then each check or none.
    Several(Vec<Expectation>, Vec<CheckExpectation>),
}

/// The expected decision about a check, and about its limits by their number in the text of the policy.
#[derive(Clone, Debug)]
pub(super) struct CheckExpectation {
    pub(super) fields: Vec<Expectation>,
    pub(super) limits: Vec<(usize, Vec<Expectation>)>,
}

/// A field and its expected value.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    pub(super) field: Field,
    value: Value,
}

/// A field of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Verdict,
    Changed,
    Capacity,
    Remaining,
    Retry,
    Reset,
    Delay,
    Granted,
    Reason,
    Binding,
    Replayed,
    Shadow,
    Lease,
    Reservation,
}

/// Fields that are followed by a value.
const FIELDS: [(&str, Field); 10] = [
    ("capacity", Field::Capacity),
    ("remaining", Field::Remaining),
    ("retry", Field::Retry),
    ("reset", Field::Reset),
    ("delay", Field::Delay),
    ("granted", Field::Granted),
    ("reason", Field::Reason),
    ("binding", Field::Binding),
    ("lease", Field::Lease),
    ("reservation", Field::Reservation),
];

/// Words that are the value of a field.
const WORDS: [(&str, Field); 9] = [
    ("allowed", Field::Verdict),
    ("denied", Field::Verdict),
    ("never", Field::Verdict),
    ("changed", Field::Changed),
    ("unchanged", Field::Changed),
    ("replayed", Field::Replayed),
    ("not-replayed", Field::Replayed),
    ("shadow", Field::Shadow),
    ("not-shadow", Field::Shadow),
];

impl Field {
    pub(super) fn name(self) -> &'static str {
        let named = FIELDS.iter().find(|(_, field)| *field == self).map(|(name, _)| *name);
        named.unwrap_or(match self {
            Field::Verdict => "verdict",
            Field::Changed => "changed",
            Field::Replayed => "replayed",
            _ => "shadow",
        })
    }
}

/// A value: a word, or a first and last value, between which the repetitions go in equal steps.
#[derive(Clone, Debug)]
enum Value {
    Word(String),
    Number(u64, u64),
    Span(u64, u64),
}

impl Expectation {
    /// The value as text in repetition `turn` of `turns`.
    pub(super) fn shown(&self, turn: u32, turns: u32) -> String {
        let step = |first: u64, last: u64| {
            let way = u128::from(first.abs_diff(last)) * u128::from(turn);
            let way = u64::try_from(way / u128::from(turns.max(2) - 1)).unwrap_or(u64::MAX);
            if last < first { first - way } else { first + way }
        };
        match &self.value {
            Value::Word(word) => word.clone(),
            Value::Number(first, last) => step(*first, *last).to_string(),
            Value::Span(first, last) => Micros::new(step(*first, *last)).to_string(),
        }
    }

    /// Whether the steps over this many repetitions are integers.
    pub(super) fn is_even(&self, turns: u32) -> bool {
        match self.value {
            Value::Word(_) => true,
            Value::Number(first, last) | Value::Span(first, last) => {
                let way = first.abs_diff(last);
                way == 0 || (turns > 1 && way.is_multiple_of(u64::from(turns - 1)))
            }
        }
    }
}

impl Expected {
    /// The expectations of the checks.
    pub(super) fn checks(&self) -> &[CheckExpectation] {
        match self {
            Expected::Error(_) => &[],
            Expected::One(one) => std::slice::from_ref(one),
            Expected::Several(_, checks) => checks,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Expectation> {
        let whole = match self {
            Expected::Several(whole, _) => whole.as_slice(),
            _ => &[],
        };
        let checks = self.checks().iter().flat_map(|check| {
            check.fields.iter().chain(check.limits.iter().flat_map(|(_, fields)| fields))
        });
        whole.iter().chain(checks)
    }
}

/// Parses the text after `->` of a request with this many checks.
pub(super) fn parse_expected(text: &str, checks: usize) -> Result<Expected, Mistake> {
    let mut words = Words::new(text);
    if words.skip_word("error") {
        return match words.rest() {
            other if other.is_empty() => Err("the words of the error are missing".into()),
            other => Ok(Expected::Error(other)),
        };
    }
    let mut parts = text.split('|');
    let first = parts.next().unwrap_or_default();
    if checks <= 1 {
        return match parts.next() {
            Some(_) => Err("one check has one answer".into()),
            None => Ok(Expected::One(parse_check(first)?)),
        };
    }
    let whole = parse_verdict_and_fields(Words::new(first))?;
    if whole.iter().any(|whole| !matches!(whole.field, Field::Verdict | Field::Retry)) {
        return Err("a whole request has a verdict and a retry".into());
    }
    let each = parts.map(parse_check).collect::<Result<Vec<_>, _>>()?;
    match each.len() {
        0 => Ok(Expected::Several(whole, each)),
        n if n == checks => Ok(Expected::Several(whole, each)),
        n => Err(format!("{checks} checks, but {n} answers")),
    }
}

fn parse_check(text: &str) -> Result<CheckExpectation, Mistake> {
    let mut parts = text.split(';');
    let fields = parse_verdict_and_fields(Words::new(parts.next().unwrap_or_default()))?;
    let limits = parts.map(parse_limit).collect::<Result<_, _>>()?;
    Ok(CheckExpectation { fields, limits })
}

/// `limit N: FIELDS`, numbered from 1.
fn parse_limit(text: &str) -> Result<(usize, Vec<Expectation>), Mistake> {
    let mut words = Words::new(text);
    let number = words.skip_word("limit").then(|| words.next()).flatten();
    let number =
        number.and_then(|word| word.strip_suffix(':')).and_then(|number| number.parse().ok());
    match number {
        Some(number @ 1..) => Ok((number, fields(words)?)),
        _ => Err(format!("{:?} does not begin with `limit N:`", text.trim())),
    }
}

/// Parses a verdict and fields.
fn parse_verdict_and_fields(words: Words<'_>) -> Result<Vec<Expectation>, Mistake> {
    let all = fields(words)?;
    match all.first().map(|expectation| expectation.field) {
        Some(Field::Verdict | Field::Changed) => Ok(all),
        _ => Err("the verdict comes first".into()),
    }
}

fn fields(mut words: Words<'_>) -> Result<Vec<Expectation>, Mistake> {
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let by_value = WORDS.iter().find(|(name, _)| *name == word);
        let by_name = FIELDS.iter().find(|(name, _)| *name == word);
        let (field, value) = match (by_value, by_name) {
            (Some((_, field)), _) => (*field, Value::Word(word.to_owned())),
            (_, Some((_, field))) => (*field, value(*field, words.need(word)?)?),
            _ => return Err(format!("{word:?} is no field")),
        };
        all.push(Expectation { field, value });
    }
    Ok(all)
}

fn value(field: Field, word: &str) -> Result<Value, Mistake> {
    let (first, last) = word.split_once("..").unwrap_or((word, word));
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is no number"));
    Ok(match field {
        Field::Retry | Field::Reset | Field::Lease | Field::Reservation if word == "none" => {
            Value::Word(word.to_owned())
        }
        Field::Retry | Field::Reset | Field::Delay => {
            Value::Span(span(first)?.get(), span(last)?.get())
        }
        Field::Lease | Field::Reservation => Value::Word(id(word).map(|id: Id| id.to_string())?),
        Field::Reason => Value::Word(word.to_owned()),
        _ => Value::Number(number(first)?, number(last)?),
    })
}

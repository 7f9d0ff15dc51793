//! Parses a file of rows.

use std::fmt;

use tollgate_algorithms::{Micros, Timestamp};

use super::expected::{Expected, parse_expected};
use super::policies::{self, Policies};
use super::request::{TestRequest, parse_request};
use super::spans::{moment, span};
use super::words::{Mistake, Words, without_comment};

/// 2026-11-20T00:00:00Z, a Friday.
const BASE: Timestamp = Timestamp::from_micros(1_795_132_800_000_000);

/// A file of rows.
#[derive(Clone, Debug)]
pub struct Rows {
    pub(super) file: String,
    pub(super) sections: Vec<Section>,
}

/// Rows that share a store.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
}

/// A line with a row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) step: Step,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A request, repeated `turns` times.
    Decide { at: Timestamp, every: Micros, turns: u32, request: TestRequest, expected: Expected },
    /// Invalid limits, and words of the error message.
    Refuse { limits: String, words: String },
}

/// An invalid line of a file of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    file: String,
    line: usize,
    row: String,
    mistake: Mistake,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n    {}", self.file, self.line, self.row, self.mistake)
    }
}

impl std::error::Error for ParseError {}

impl Rows {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// A line is invalid, or the last line does not state the number of rows.
    pub fn parse(file: &str, text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::new(file);
        let error = |line: usize, row: &str, mistake| ParseError {
            file: file.to_owned(),
            line,
            row: row.to_owned(),
            mistake,
        };
        for (index, line) in text.lines().enumerate() {
            let line = without_comment(line);
            reader.read(index + 1, line).map_err(|e| error(index + 1, line, e))?;
        }
        let last = text.lines().count();
        let rows = reader.rows.count();
        match reader.plan {
            Some(plan) if plan == rows && rows > 0 => Ok(reader.rows),
            Some(plan) => Err(error(last, "", format!("{plan} rows are planned, {rows} found"))),
            None => Err(error(last, "", format!("the plan is missing: `rows {rows}`"))),
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sections.iter().map(|section| section.rows.len()).sum()
    }
}

/// The base of times and the policies at a line.
#[derive(Clone, Debug)]
struct Scope {
    base: Timestamp,
    policies: Policies,
}

struct Reader {
    rows: Rows,
    /// The scope before the first section, with which each section starts.
    prelude: Scope,
    scope: Scope,
    plan: Option<usize>,
}

impl Reader {
    fn new(file: &str) -> Self {
        let scope = Scope { base: BASE, policies: Policies::new() };
        Reader {
            rows: Rows { file: file.to_owned(), sections: Vec::new() },
            prelude: scope.clone(),
            scope,
            plan: None,
        }
    }

    fn read(&mut self, line: usize, text: &str) -> Result<(), Mistake> {
        let mut words = Words::new(text);
        let Some(first) = words.next() else { return Ok(()) };
        if self.plan.is_some() {
            return Err("the plan is the last line".into());
        }
        match first {
            "==" => {
                if self.rows.sections.is_empty() {
                    self.prelude = self.scope.clone();
                }
                self.scope = self.prelude.clone();
                self.rows.sections.push(Section { title: words.rest(), rows: Vec::new() });
                Ok(())
            }
            "base" => {
                self.scope.base = moment(words.need("the time")?, self.scope.base)?;
                words.end()
            }
            "policy" => policies::define(words, &mut self.scope.policies),
            "rows" => {
                let plan = words.need("the number of rows")?;
                self.plan = Some(plan.parse().map_err(|_| format!("{plan:?} is no number"))?);
                words.end()
            }
            "at" | "refuse" => {
                let step = if first == "at" { self.parse_row(words)? } else { refusal(words)? };
                let section = self.rows.sections.last_mut();
                let rows = &mut section.ok_or("a row stands in a section, below a `==`")?.rows;
                rows.push(Row { line, text: text.to_owned(), step });
                Ok(())
            }
            other => Err(format!("{other:?} begins no line")),
        }
    }

    /// `TIME [every SPAN] [Nx] OPERATION … -> EXPECTED`.
    fn parse_row(&self, mut words: Words<'_>) -> Result<Step, Mistake> {
        let at = moment(words.need("the time")?, self.scope.base)?;
        let every = match words.skip_word("every") {
            true => span(words.need("the span")?)?,
            false => Micros::ZERO,
        };
        let times = |text: &str| text.strip_suffix('x').and_then(|number| number.parse().ok());
        let turns = words.read_as(times).unwrap_or(1);
        let request = parse_request(&mut words, &self.scope.policies, self.scope.base)?;
        let expected = parse_expected(&words.rest(), request.checks.len())?;
        if turns == 0 {
            return Err("a row runs at least once".into());
        }
        if !expected.all().all(|expectation| expectation.is_even(turns)) {
            return Err(format!("a range does not go in whole steps over {turns} turns"));
        }
        known_limits(&request, &expected)?;
        Ok(Step::Decide { at, every, turns, request, expected })
    }
}

/// Fails if the expectation names a limit that the policy does not have.
fn known_limits(request: &TestRequest, expected: &Expected) -> Result<(), Mistake> {
    for (check, expected) in request.checks.iter().zip(expected.checks()) {
        let most = check.policy.places.len();
        if let Some((number, _)) = expected.limits.iter().find(|(number, _)| *number > most) {
            return Err(format!("there is no limit {number}"));
        }
    }
    Ok(())
}

/// `LIMITS -> WORDS`.
fn refusal(words: Words<'_>) -> Result<Step, Mistake> {
    let text = words.rest();
    let (limits, words) = text.split_once(" -> ").ok_or("`->` is missing")?;
    Ok(Step::Refuse { limits: limits.to_owned(), words: words.to_owned() })
}

//! Reading a file of rows.

use std::fmt;

use tollgate_core::{Micros, Timestamp};

use super::expected::{Expected, expected};
use super::policies::{self, Policies};
use super::request::{TestRequest, asked};
use super::spans::{moment, span};
use super::words::{Fault, Words, without_comment};

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

/// A line that holds something.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) step: Step,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The same request a number of times.
    Ask { at: Timestamp, every: Micros, turns: u32, asked: TestRequest, expected: Expected },
    /// Limits that make no policy, and words of the reason.
    Refuse { limits: String, words: String },
}

/// The error for a file of rows that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    file: String,
    line: usize,
    row: String,
    fault: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n    {}", self.file, self.line, self.row, self.fault)
    }
}

impl std::error::Error for ParseError {}

impl Rows {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// A line is not understood, or the plan is missing or not the number of rows.
    pub fn parse(file: &str, text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::new(file);
        let error = |line: usize, row: &str, fault| ParseError {
            file: file.to_owned(),
            line,
            row: row.to_owned(),
            fault,
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

    /// The name it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// How many rows it has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sections.iter().map(|section| section.rows.len()).sum()
    }
}

/// What holds at a line: where times count from, and which policies there are.
#[derive(Clone, Debug)]
struct Scope {
    base: Timestamp,
    policies: Policies,
}

struct Reader {
    rows: Rows,
    /// What stands before the first section, for each to begin with.
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

    fn read(&mut self, line: usize, text: &str) -> Result<(), Fault> {
        let mut words = Words::of(text);
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
                let step = if first == "at" { self.ask(words)? } else { refusal(words)? };
                let section = self.rows.sections.last_mut();
                let rows = &mut section.ok_or("a row stands in a section, below a `==`")?.rows;
                rows.push(Row { line, text: text.to_owned(), step });
                Ok(())
            }
            other => Err(format!("{other:?} begins no line")),
        }
    }

    /// `TIME [every SPAN] [Nx] VERB … -> EXPECTED`.
    fn ask(&self, mut words: Words<'_>) -> Result<Step, Fault> {
        let at = moment(words.need("the time")?, self.scope.base)?;
        let every = match words.skip_word("every") {
            true => span(words.need("the span")?)?,
            false => Micros::ZERO,
        };
        let times = |text: &str| text.strip_suffix('x').and_then(|i| i.parse().ok());
        let turns = words.read_as(times).unwrap_or(1);
        let asked = asked(&mut words, &self.scope.policies, self.scope.base)?;
        let expected = expected(&words.rest(), asked.checks.len())?;
        if turns == 0 {
            return Err("a row is asked at least once".into());
        }
        if !expected.all().all(|x| x.is_even(turns)) {
            return Err(format!("a range does not go in whole steps over {turns} turns"));
        }
        known_limits(&asked, &expected)?;
        Ok(Step::Ask { at, every, turns, asked, expected })
    }
}

/// Every limit that something is expected of is one of its policy's.
fn known_limits(asked: &TestRequest, expected: &Expected) -> Result<(), Fault> {
    for (check, of_check) in asked.checks.iter().zip(expected.of_checks()) {
        let most = check.policy.places.len();
        if let Some((number, _)) = of_check.limits.iter().find(|(x, _)| *x > most) {
            return Err(format!("there is no limit {number}"));
        }
    }
    Ok(())
}

/// `LIMITS -> WORDS`.
fn refusal(words: Words<'_>) -> Result<Step, Fault> {
    let text = words.rest();
    let (limits, words) = text.split_once(" -> ").ok_or("`->` is missing")?;
    Ok(Step::Refuse { limits: limits.to_owned(), words: words.to_owned() })
}

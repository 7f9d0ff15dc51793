//! Runs the rows of the files of `rows/` on a store and compares its answers with the expectations.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use tollgate_algorithms::{Micros, Timestamp};
use tollgate_state::{Answer, Store, StoreError};

use super::compare::{Difference, contradictions, differences};
use super::expected::Expected;
use super::parse::{Row, Rows, Step};
use super::policies;
use super::request::TestRequest;

/// The result of running a file of rows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of rows.
    pub rows: usize,
    /// The number of requests.
    pub requests: usize,
    /// The differences from the expectations.
    pub failures: Vec<Failure>,
}

/// A field of an answer that differs from the expectation of its row.
#[derive(Clone, Debug)]
pub struct Failure {
    file: String,
    section: String,
    line: usize,
    row: String,
    turn: Option<u32>,
    difference: Difference,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { file, section, line, row, turn, difference } = self;
        let Difference { field, expected, got } = difference;
        writeln!(f, "{file}:{line}: in \"{section}\"\n    {row}")?;
        write!(f, "    {field}: expected {expected}, got {got}")?;
        match turn {
            Some(turn) => write!(f, ", in turn {turn}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failures.iter().try_for_each(|failure| writeln!(f, "{failure}"))?;
        let failed = self.failures.len();
        write!(f, "{} rows, {} requests, {failed} failures", self.rows, self.requests)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rows")
}

/// The names of all files below `rows/`, sorted.
///
/// # Errors
/// The folder cannot be read.
pub fn files() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    find(&folder(), &mut found)?;
    found.sort();
    Ok(found)
}

fn find(below: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(below)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rows") {
            let name = path.strip_prefix(folder()).unwrap_or(&path);
            found.push(name.display().to_string());
        }
    }
    Ok(())
}

/// Reads and parses a file.
///
/// # Errors
/// The file cannot be read, or a line is invalid.
pub fn read(name: &str) -> io::Result<Rows> {
    let text = fs::read_to_string(folder().join(name))?;
    Rows::parse(name, &text).map_err(io::Error::other)
}

/// Runs every section on its own store, which `fresh` creates; it may be a namespace of a shared store.
/// `set_time` sets the clock of the stores.
pub async fn run<S: Store>(
    rows: &Rows,
    mut fresh: impl FnMut() -> S,
    mut set_time: impl FnMut(Timestamp),
) -> Report {
    let mut report = Report::default();
    for section in &rows.sections {
        let store = fresh();
        for row in &section.rows {
            report.rows += 1;
            let (requests, found) = run_row(row, &store, &mut set_time).await;
            report.requests += requests;
            report.failures.extend(found.into_iter().map(|(turn, difference)| Failure {
                file: rows.file.clone(),
                section: section.title.clone(),
                line: row.line,
                row: row.text.clone(),
                turn,
                difference,
            }));
        }
    }
    report
}

/// Runs every file of `rows/`, as [`run`] does.
///
/// # Errors
/// A file cannot be read, or a line is invalid.
pub async fn run_all<S: Store>(
    mut fresh: impl FnMut() -> S,
    mut set_time: impl FnMut(Timestamp),
) -> io::Result<Report> {
    let mut all = Report::default();
    for name in files()? {
        let rows = read(&name)?;
        let report = run(&rows, &mut fresh, &mut set_time).await;
        assert_eq!(report.rows, rows.count(), "{name}: every row runs");
        all.rows += report.rows;
        all.requests += report.requests;
        all.failures.extend(report.failures);
    }
    Ok(all)
}

/// Returns the number of requests of a row, and the differences in the first repetition that has any.
async fn run_row<S: Store>(
    row: &Row,
    store: &S,
    set_time: &mut impl FnMut(Timestamp),
) -> (usize, Vec<(Option<u32>, Difference)>) {
    let (at, every, turns, request, expected) = match &row.step {
        Step::Refuse { limits, words } => return (0, refused(limits, words)),
        Step::Decide { at, every, turns, request, expected } => {
            (*at, *every, *turns, request, expected)
        }
    };
    let checks = request.checks();
    let mut found = Vec::new();
    for turn in 0..turns {
        let now = at.saturating_add(Micros::new(every.get() * u64::from(turn)));
        set_time(now);
        let answer = store.decide(&[request.request(&checks)]).await.pop();
        if found.is_empty() {
            let number = (turns > 1).then_some(turn + 1);
            let differences = judge(request, expected, answer, now, (turn, turns));
            found = differences.into_iter().map(|difference| (number, difference)).collect();
        }
    }
    (usize::try_from(turns).unwrap_or(usize::MAX), found)
}

fn judge(
    request: &TestRequest,
    expected: &Expected,
    answer: Option<Result<Answer, StoreError>>,
    now: Timestamp,
    turn: (u32, u32),
) -> Vec<Difference> {
    let other = |expected: &str, got: String| {
        vec![Difference { field: "answer".into(), expected: expected.into(), got }]
    };
    match (expected, answer) {
        (_, None) => other("an answer", "none".into()),
        (Expected::Error(words), Some(Err(error))) => match error.to_string() {
            text if text.contains(words.as_str()) => Vec::new(),
            text => other(words, text),
        },
        (Expected::Error(words), Some(Ok(answer))) => {
            let verdict = if answer.allowed() { "allowed" } else { "denied" };
            other(&format!("error {words}"), verdict.into())
        }
        (_, Some(Err(error))) => other("a decision", format!("error {error}")),
        (expected, Some(Ok(answer))) => {
            let mut found = differences(&request.checks, expected, &answer, turn);
            found.extend(contradictions(&answer, now));
            found
        }
    }
}

fn refused(limits: &str, words: &str) -> Vec<(Option<u32>, Difference)> {
    let difference = |got| {
        let (field, expected) = ("limits".into(), format!("refused: {words}"));
        vec![(None, Difference { field, expected, got })]
    };
    match policies::build(None, limits) {
        Ok(line) => difference(line.policy.to_string()),
        Err(message) if message.contains(words) => Vec::new(),
        Err(message) => difference(message),
    }
}

//! Mistakes in a configuration.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tree::{Origin, Span};

/// A mistake in a configuration: where it is, in which field, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<Arc<str>>,
    origin: Option<Origin>,
    field: Option<String>,
    message: String,
    /// Boxed to keep the error small.
    named: Option<Box<FileLocation>>,
}

/// A location in a file that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLocation {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if known.
    pub line: Option<u64>,
    /// The column, counted from 1, if known.
    pub column: Option<u64>,
}

impl ConfigError {
    /// A mistake that is not yet tied to a field or a place.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        ConfigError { file: None, origin: None, field: None, message: message.into(), named: None }
    }

    /// Names the field by its full path, such as `policies.api.limits[0]`.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into()).filter(|x| !x.is_empty());
        self
    }

    /// Sets the origin of the value at fault.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin).filter(|x| *x != Origin::Default);
        self
    }

    /// Sets the name of the configuration file.
    #[must_use]
    pub fn in_file(mut self, file: &Arc<str>) -> Self {
        self.file = Some(Arc::clone(file));
        self
    }

    /// Adds the location of the mistake in a file that the field names.
    #[must_use]
    pub fn with_location(mut self, file: &Path, line: Option<u64>, column: Option<u64>) -> Self {
        self.named = Some(Box::new(FileLocation { file: file.to_owned(), line, column }));
        self
    }

    /// The full path of the field, such as `policies.api.limits[0]`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The mistake, and its remedy.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line, counted from 1, if the value is in the file.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.span().map(|span| span.line)
    }

    /// The column in characters, counted from 1, if the value is in the file.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.span().map(|span| span.column)
    }

    /// The location of the mistake in a file that the field names. The message has it too.
    #[must_use]
    pub fn named(&self) -> Option<&FileLocation> {
        self.named.as_deref()
    }

    fn span(&self) -> Option<&Span> {
        match &self.origin {
            Some(Origin::File(span)) => Some(span),
            _ => None,
        }
    }

    /// The field and the message.
    fn full_message(&self) -> String {
        match &self.field {
            Some(field) => format!("{field}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// The place in front of the message, such as `tollgate.yaml:7:14`.
    fn place(&self) -> Option<String> {
        let file = self.file.as_deref();
        match &self.origin {
            Some(Origin::Variable(name)) => Some(name.to_string()),
            Some(Origin::Flag(name)) => Some((*name).to_owned()),
            Some(Origin::File(Span { line, column, .. })) => Some(match file {
                Some(file) => format!("{file}:{line}:{column}"),
                None => format!("line {line}, column {column}"),
            }),
            _ => file.map(str::to_owned),
        }
    }
}

/// `tollgate.yaml:7:14: policies.api.limits[0]: …`.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.full_message())
    }
}

impl std::error::Error for ConfigError {}

/// The number of mistakes that are shown.
const MAX_SHOWN: usize = 20;
/// The number of characters of a line that are shown.
const MAX_WIDTH: usize = 160;
/// The number of mistakes that are kept.
const MAX_RETAINED: usize = 1_000;

/// All mistakes of a configuration, in the order of the file; at least one.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    /// The number of mistakes beyond those.
    more: usize,
    source: Option<Arc<str>>,
    /// The parts of the source that are masked.
    secrets: Vec<Range<usize>>,
}

impl ConfigErrors {
    /// Adds the text of the file, for the excerpts of [`report`](Self::report). The ranges in
    /// `secrets` are masked.
    #[must_use]
    pub fn with_source(mut self, source: Arc<str>, secrets: Vec<Range<usize>>) -> Self {
        self.source = Some(source);
        self.secrets = secrets;
        self
    }

    /// The mistakes that are shown.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.errors.iter().take(MAX_SHOWN)
    }

    /// The number of mistakes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.errors.len() + self.more
    }

    /// The number of mistakes that are not shown.
    #[must_use]
    pub fn more(&self) -> usize {
        self.count().saturating_sub(MAX_SHOWN)
    }

    /// A report like that of a compiler: each mistake with its line and carets; secrets are masked.
    #[must_use]
    pub fn report(&self) -> String {
        let mut report = String::new();
        for error in self.iter() {
            // Writing to a `String` does not fail.
            let _ = writeln!(report, "error: {}", error.full_message());
            if let Some(place) = error.place() {
                let _ = writeln!(report, " --> {place}");
            }
            write_excerpt(&mut report, self, error);
            report.push('\n');
        }
        if self.more() > 0 {
            let _ = writeln!(report, "… and {} more\n", self.more());
        }
        report.truncate(report.trim_end().len());
        report.push('\n');
        report
    }
}

/// Writes the line of an error, and carets under the mistake.
fn write_excerpt(report: &mut String, errors: &ConfigErrors, error: &ConfigError) {
    let (Some(source), Some(span)) = (&errors.source, error.span()) else { return };
    let from = source
        .get(..span.bytes.start)
        .and_then(|text| text.rfind('\n'))
        .map_or(0, |newline| newline + 1);
    let Some(rest) = source.get(from..) else { return };
    // An empty rest is an empty line.
    let line = rest.lines().next().unwrap_or_default();
    let shown = masked(line, from, &errors.secrets);
    let before = span.column.saturating_sub(1);
    let mistake = source.get(span.bytes.clone()).unwrap_or_default();
    let width = mistake.lines().next().unwrap_or_default().trim_end().chars().count().max(1);
    // A mistake beyond the width has no carets: the line is too long to read anyway.
    let carets = if before < MAX_WIDTH { width.min(MAX_WIDTH - before) } else { 0 };
    let shown: String = shown.chars().take(MAX_WIDTH).collect();
    let number = span.line.to_string();
    let margin = " ".repeat(number.len());
    let _ = writeln!(report, "{margin} |");
    let _ = writeln!(report, "{number} | {}", shown.trim_end());
    if carets > 0 {
        // A mistake at the end of a line may begin after its last character.
        let blanks = shown.chars().map(blank).chain(std::iter::repeat(' '));
        let indent: String = blanks.take(before).collect();
        let _ = writeln!(report, "{margin} | {indent}{}", "^".repeat(carets));
    }
}

/// The blank that is as wide as a character, so that carets line up after tabs.
fn blank(character: char) -> char {
    if character == '\t' { '\t' } else { ' ' }
}

/// A line with each character of a secret replaced by a star.
fn masked(line: &str, from: usize, secrets: &[Range<usize>]) -> String {
    let is_secret = |at: usize| secrets.iter().any(|secret| secret.contains(&(from + at)));
    let stars = |(at, character)| if is_secret(at) { '*' } else { character };
    line.char_indices().map(stars).collect()
}

/// Omits the source, which may contain secrets.
impl fmt::Debug for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Prints one mistake per line.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n" };
            write!(f, "{between}{error}")?;
        }
        match self.more() {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        ConfigErrors { errors: vec![error], more: 0, source: None, secrets: Vec::new() }
    }
}

/// Collects mistakes while a configuration is read.
#[derive(Debug, Default)]
pub struct Diagnostics {
    errors: RefCell<Vec<ConfigError>>,
    more: Cell<usize>,
}

impl Diagnostics {
    /// Adds a mistake.
    pub fn add(&self, error: ConfigError) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_RETAINED {
            errors.push(error);
        } else {
            self.more.set(self.more.get() + 1);
        }
    }

    /// Whether no mistake was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// All mistakes in the order of the file. Call it only if there is one.
    pub fn into_errors(self, file: Option<&Arc<str>>) -> ConfigErrors {
        let mut errors = self.errors.into_inner();
        // Mistakes outside the file come last, in the order in which they were found.
        errors.sort_by_key(|error| {
            error.span().map_or((usize::MAX, 0), |span| (span.line, span.column))
        });
        // A value may be checked twice, such as the pattern of an override.
        errors.dedup_by(|next, error| {
            error.field.is_some()
                && (&error.field, &error.origin, &error.named)
                    == (&next.field, &next.origin, &next.named)
        });
        if let Some(file) = file {
            errors = errors.into_iter().map(|error| error.in_file(file)).collect();
        }
        ConfigErrors { errors, more: self.more.get(), source: None, secrets: Vec::new() }
    }
}

//! Why a configuration cannot be used.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::report;
use super::tree::{Origin, Span};

/// Why a configuration cannot be used: where, which field, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<Arc<str>>,
    origin: Option<Origin>,
    field: Option<String>,
    message: String,
    /// Apart, so that a result with an error is not much larger than one without.
    named: Option<Box<NamedPlace>>,
}

/// A place in a file that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPlace {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// The column, from 1, where it is known.
    pub column: Option<u64>,
}

impl ConfigError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        ConfigError { file: None, origin: None, field: None, message: message.into(), named: None }
    }

    pub(super) fn of(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into()).filter(|x| !x.is_empty());
        self
    }

    pub(super) fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin).filter(|x| *x != Origin::Default);
        self
    }

    pub(super) fn in_file(mut self, file: &Arc<str>) -> Self {
        self.file = Some(Arc::clone(file));
        self
    }

    pub(super) fn naming(mut self, file: &Path, line: Option<u64>, column: Option<u64>) -> Self {
        self.named = Some(Box::new(NamedPlace { file: file.to_owned(), line, column }));
        self
    }

    /// The field, with the whole of its name, such as `policies.api.limits[0]`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// What is wrong, and what to write instead.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line at fault, from 1, where it is one of the file.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.span().map(|span| span.line)
    }

    /// The column at fault, in characters from 1, where it is one of the file.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.span().map(|span| span.column)
    }

    /// Where the mistake is, if that is a file that the field names; the message says it too.
    #[must_use]
    pub fn named(&self) -> Option<&NamedPlace> {
        self.named.as_deref()
    }

    pub(super) fn span(&self) -> Option<&Span> {
        match &self.origin {
            Some(Origin::File(span)) => Some(span),
            _ => None,
        }
    }

    /// Field and message in one.
    pub(super) fn said(&self) -> String {
        match &self.field {
            Some(field) => format!("{field}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// The place in front of what is said, such as `tollgate.yaml:7:14`.
    pub(super) fn place(&self) -> Option<String> {
        match (&self.origin, &self.file) {
            (Some(Origin::Variable(name)), _) => Some(name.as_ref().to_owned()),
            (Some(Origin::Flag(name)), _) => Some((*name).to_owned()),
            (Some(Origin::File(Span { line, column, .. })), Some(file)) => {
                Some(format!("{file}:{line}:{column}"))
            }
            (Some(Origin::File(Span { line, column, .. })), None) => {
                Some(format!("line {line}, column {column}"))
            }
            (_, file) => file.as_deref().map(str::to_owned),
        }
    }
}

/// `tollgate.yaml:7:14: policies.api.limits[0]: …`.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.said())
    }
}

impl std::error::Error for ConfigError {}

/// The most mistakes that are shown.
const MAX_SHOWN: usize = 20;
/// The most that are kept.
const MAX_RETAINED: usize = 1_000;

/// Every mistake of a configuration, in the order in which they stand there; one at least.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    /// How many there are beyond.
    more: usize,
    pub(super) source: Option<Arc<str>>,
    /// What of the source is not shown.
    pub(super) secrets: Vec<Range<usize>>,
}

impl ConfigErrors {
    /// The mistakes that are shown.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.errors.iter().take(MAX_SHOWN)
    }

    /// How many mistakes there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.errors.len() + self.more
    }

    /// How many are not shown.
    #[must_use]
    pub fn more(&self) -> usize {
        self.count() - self.iter().count()
    }

    /// The mistakes as a compiler reports them: each with its line, and carets under what is
    /// wrong. Secrets are masked.
    #[must_use]
    pub fn report(&self) -> String {
        report::write(self)
    }
}

/// Without the source, which may hold secrets.
impl fmt::Debug for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One mistake a line.
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

/// Mistakes as they are found.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    errors: RefCell<Vec<ConfigError>>,
    more: Cell<usize>,
}

impl Complaints {
    pub(super) fn add(&self, error: ConfigError) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_RETAINED {
            errors.push(error);
        } else {
            self.more.set(self.more.get() + 1);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// All of them, by place. There is one at least.
    pub(crate) fn into_errors(self, file: Option<&Arc<str>>) -> ConfigErrors {
        let mut errors = self.errors.into_inner();
        // What does not stand in the file comes last, in the order in which it was found.
        errors.sort_by_key(|error| {
            error.span().map_or((usize::MAX, 0), |span| (span.line, span.column))
        });
        // What reads a value anew may find again what was found when it was looked at by itself.
        errors.dedup_by(|next, error| {
            error.field.is_some()
                && (&error.field, &error.origin, &error.named)
                    == (&next.field, &next.origin, &next.named)
        });
        if let Some(file) = file {
            errors = errors.into_iter().map(|error| error.in_file(file)).collect();
        }
        let more = self.more.get();
        ConfigErrors { errors, more, source: None, secrets: Vec::new() }
    }
}

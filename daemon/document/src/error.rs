//! Mistakes in a configuration.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::report;
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

    pub(crate) fn span(&self) -> Option<&Span> {
        match &self.origin {
            Some(Origin::File(span)) => Some(span),
            _ => None,
        }
    }

    /// The field and the message.
    pub(crate) fn full_message(&self) -> String {
        match &self.field {
            Some(field) => format!("{field}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// The place in front of the message, such as `tollgate.yaml:7:14`.
    pub(crate) fn place(&self) -> Option<String> {
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
        f.write_str(&self.full_message())
    }
}

impl std::error::Error for ConfigError {}

/// The number of mistakes that are shown.
const MAX_SHOWN: usize = 20;
/// The number of mistakes that are kept.
const MAX_RETAINED: usize = 1_000;

/// All mistakes of a configuration, in the order of the file; at least one.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    /// The number of mistakes beyond those.
    more: usize,
    pub(crate) source: Option<Arc<str>>,
    /// The parts of the source that are masked.
    pub(crate) secrets: Vec<Range<usize>>,
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
        self.count() - self.iter().count()
    }

    /// A report in the style of a compiler: each mistake with its line and carets. Secrets are masked.
    #[must_use]
    pub fn report(&self) -> String {
        report::write(self)
    }
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
        // A value that is read twice reports its mistake twice.
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

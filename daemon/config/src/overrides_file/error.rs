//! Mistakes in a file of overrides.

use std::fmt;
use std::io;

/// The maximum number of characters of a value that are shown.
const MAX_SHOWN: usize = 64;

/// A mistake in a file of overrides: position, field, value and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverridesFileError {
    file: String,
    line: Option<u64>,
    column: Option<u64>,
    field: Option<&'static str>,
    message: String,
}

impl OverridesFileError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        OverridesFileError { file: String::new(), line: None, column: None, field: None, message }
    }

    pub(super) fn unreadable(error: &io::Error) -> Self {
        OverridesFileError::new(format!("cannot be read: {error}"))
    }

    /// Prefixes the message with the value at fault, unless the message contains it.
    pub(super) fn with_value(mut self, value: &str) -> Self {
        if !self.message.contains(&format!("{value:?}")) {
            let shown: String = value.chars().take(MAX_SHOWN).collect();
            let rest = if shown.len() < value.len() { "…" } else { "" };
            self.message = format!("{shown:?}{rest}: {}", self.message);
        }
        self
    }

    pub(super) fn of(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    pub(super) fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    pub(super) fn at_column(mut self, column: u64) -> Self {
        self.column = Some(column).filter(|x| *x > 0);
        self
    }

    pub(super) fn in_file(mut self, file: &str) -> Self {
        file.clone_into(&mut self.file);
        self
    }

    /// The line at fault, counted from 1, if known.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The column at fault, counted from 1, if known.
    #[must_use]
    pub fn column(&self) -> Option<u64> {
        self.column
    }

    /// The field at fault, `key` or `limits`, if known.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        self.field
    }

    /// The message, without the position.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `overrides.csv:7: key: "10.0.0.1/8": …`.
impl fmt::Display for OverridesFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for place in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{place}")?;
        }
        f.write_str(": ")?;
        if let Some(field) = self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for OverridesFileError {}

//! Why a configuration cannot be used.

use std::fmt;

/// Why a configuration cannot be used: where, which field, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: String,
    /// The line and column, from 1.
    place: Option<(u64, u64)>,
    field: Option<String>,
    message: String,
}

impl ConfigError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        ConfigError { file: String::new(), place: None, field: None, message: message.into() }
    }

    pub(super) fn of(mut self, field: impl Into<String>) -> Self {
        self.field.get_or_insert(field.into());
        self
    }

    pub(super) fn at(mut self, location: serde_saphyr::Location) -> Self {
        if location.line() > 0 {
            self.place.get_or_insert((location.line(), location.column()));
        }
        self
    }

    pub(super) fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    pub(super) fn in_file(mut self, file: &str) -> Self {
        file.clone_into(&mut self.file);
        self
    }

    /// The line at fault, from 1, where it is known.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.place.map(|(line, _)| line)
    }
}

/// `tollgate.yaml:7:14: policies.api.limits[0]: …`.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.file, self.place) {
            ("", None) => {}
            ("", Some((line, column))) => write!(f, "line {line}, column {column}: ")?,
            (file, None) => write!(f, "{file}: ")?,
            (file, Some((line, column))) => write!(f, "{file}:{line}:{column}: ")?,
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

//! Errors of the TLS files.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate_config::TlsConfig;

/// A file of `listen.tls` cannot be used: the field, the file, and the reason with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    field: &'static str,
    file: PathBuf,
    reason: String,
}

impl TlsError {
    pub(super) fn new(field: &'static str, file: &Path, reason: impl Into<String>) -> Self {
        TlsError { field, file: file.to_owned(), reason: reason.into() }
    }

    pub(super) fn cert(files: &TlsConfig, reason: impl Into<String>) -> Self {
        TlsError::new("cert", &files.cert, reason)
    }

    pub(super) fn key(files: &TlsConfig, reason: impl Into<String>) -> Self {
        TlsError::new("key", &files.key, reason)
    }

    /// The field of `listen.tls` that names the file.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The reason, without the name of the file.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listen.tls.{}: {}: {}", self.field, self.file.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

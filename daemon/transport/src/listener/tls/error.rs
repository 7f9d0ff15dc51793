//! Errors of the TLS files.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate_config::TlsConfig;

/// A file of `listen.tls` cannot be used: the field, the file and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    field: &'static str,
    file: PathBuf,
    why: String,
}

impl TlsError {
    pub(super) fn new(field: &'static str, file: &Path, why: impl Into<String>) -> Self {
        TlsError { field, file: file.to_owned(), why: why.into() }
    }

    pub(super) fn cert(files: &TlsConfig, why: impl Into<String>) -> Self {
        TlsError::new("cert", &files.cert, why)
    }

    pub(super) fn key(files: &TlsConfig, why: impl Into<String>) -> Self {
        TlsError::new("key", &files.key, why)
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
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listen.tls.{}: {}: {}", self.field, self.file.display(), self.why)
    }
}

impl std::error::Error for TlsError {}

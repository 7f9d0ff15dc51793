//! Errors in a configuration.

use std::fmt;

/// A mistake in a configuration file or resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorConfigError {
    /// The name of the file.
    pub file: String,
    /// The line at fault, counted from 1, if known. Messages of envoyproxy/ratelimit are reproduced
    /// unchanged and do not contain it.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl DescriptorConfigError {
    pub(super) fn new(file: &str, line: Option<usize>, message: impl Into<String>) -> Self {
        DescriptorConfigError { file: file.to_owned(), line, message: message.into() }
    }
}

/// `limits.yaml: descriptor has empty key`.
impl fmt::Display for DescriptorConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

impl std::error::Error for DescriptorConfigError {}

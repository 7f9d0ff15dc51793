//! Why a configuration cannot be used.

use std::fmt;

/// Why a configuration cannot be used: the file, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorConfigError {
    file: String,
    line: Option<usize>,
    message: String,
}

impl DescriptorConfigError {
    pub(super) fn new(file: &str, line: Option<usize>, message: impl Into<String>) -> Self {
        DescriptorConfigError { file: file.to_owned(), line, message: message.into() }
    }

    /// The file, as its source names it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line at fault, from 1, where it is known. The message of a fact that the reference
    /// refuses too is its own, which has no line.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `limits.yaml: descriptor has empty key`.
impl fmt::Display for DescriptorConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

impl std::error::Error for DescriptorConfigError {}

//! Errors of listeners.

use std::fmt;
use std::path::Path;

/// A listener could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenError {
    message: String,
    is_taken: bool,
}

impl ListenError {
    pub(super) fn unix(path: &Path, reason: &str) -> Self {
        let message = format!("cannot listen at unix:{}: {reason}", path.display());
        ListenError { message, is_taken: false }
    }

    pub(super) fn taken(path: &Path) -> Self {
        let message = format!("unix:{} is in use by another process; stop it", path.display());
        ListenError { message, is_taken: true }
    }

    /// Whether another process listens there.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ListenError {}

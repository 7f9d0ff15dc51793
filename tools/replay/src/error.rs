//! Errors that end a replay.

use std::fmt;

use crate::input::InputError;
use crate::log::OpenError;
use crate::report::InvalidLine;

/// Why a replay has no report.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// A file cannot be opened or read.
    Input(InputError),
    /// The format of a file is unknown: its name, and the reason.
    UnknownFormat(String, OpenError),
    /// A line is invalid, and the replay is strict.
    Strict(InvalidLine),
    /// There are over four billion keys.
    TooManyKeys,
    /// A decision cannot be written.
    Output(std::io::Error),
    /// The store is unavailable.
    Store(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Input(error) => error.fmt(f),
            ReplayError::UnknownFormat(name, error) => write!(f, "{name}: {error}"),
            ReplayError::Strict(InvalidLine { name, line, text, reason }) => {
                write!(f, "{name}:{line}: {reason}\n  {text}")
            }
            ReplayError::TooManyKeys => {
                f.write_str("more than four billion keys; replay a part of the log")
            }
            ReplayError::Output(error) => write!(f, "cannot write a decision: {error}"),
            ReplayError::Store(message) => message.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

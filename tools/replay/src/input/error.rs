//! Errors that end a file early.

use std::fmt;
use std::sync::Arc;

/// A file that cannot be read completely. The lines before the error are still returned, and the next file
/// is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The name of the file, `-` for standard input.
    pub name: Arc<str>,
    /// The number of lines before the error.
    pub lines: u64,
    /// The error.
    pub kind: InputErrorKind,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputErrorKind {
    /// Opening it failed.
    Open(String),
    /// Reading it failed.
    Read(String),
    /// Decompressing it failed.
    Decompress(String),
    /// The compression is not supported; this program decompresses it.
    Unsupported(&'static str),
    /// The reader thread ended unexpectedly.
    Stopped,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InputError { name, lines, kind } = self;
        match kind {
            InputErrorKind::Open(error) => write!(f, "cannot open {name}: {error}"),
            InputErrorKind::Read(error) if *lines == 0 => write!(f, "cannot read {name}: {error}"),
            InputErrorKind::Read(error) => {
                write!(f, "cannot read {name} after line {lines}: {error}")
            }
            InputErrorKind::Decompress(error) => write!(
                f,
                "cannot decompress {name} after line {lines}: {error}; test the file with gzip -t or \
                 zstd -t"
            ),
            InputErrorKind::Unsupported(program) => write!(
                f,
                "{name} is compressed with {program}, which is not supported; pipe it through \
                 {program} -dc {name} | tollgate replay -"
            ),
            InputErrorKind::Stopped => write!(
                f,
                "reading {name} ended unexpectedly after line {lines}; if it is compressed, decompress \
                 it and pipe it to standard input"
            ),
        }
    }
}

impl std::error::Error for InputError {}

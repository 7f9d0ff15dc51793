//! What ends the reading of a file before its end.

use std::fmt;
use std::sync::Arc;

/// A file that could not be read, or not to its end. The lines before stay; the next file is read all
/// the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file, `-` for standard input.
    pub name: Arc<str>,
    /// How many lines of it were read.
    pub lines: u64,
    /// What was the matter.
    pub kind: InputErrorKind,
}

/// What was the matter with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputErrorKind {
    /// It could not be opened, as the system says.
    Open(String),
    /// It could not be read, as the system says.
    Read(String),
    /// It could not be decompressed, as its format says.
    Decompress(String),
    /// It is compressed in a way that is not read, by this program.
    Unsupported(&'static str),
    /// The reading failed for no reason of the file's.
    Stopped,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InputError { name, lines, kind } = self;
        match kind {
            InputErrorKind::Open(why) => write!(f, "{name} cannot be opened: {why}"),
            InputErrorKind::Read(why) if *lines == 0 => write!(f, "{name} cannot be read: {why}"),
            InputErrorKind::Read(why) => {
                write!(f, "{name} cannot be read after line {lines}: {why}")
            }
            InputErrorKind::Decompress(why) => write!(
                f,
                "{name} cannot be decompressed after line {lines}: {why}; the file may be cut or \
                 damaged, which gzip -t or zstd -t tells"
            ),
            InputErrorKind::Unsupported(program) => write!(
                f,
                "{name} is compressed with {program}, which is not read here; give it as \
                 {program} -dc {name} | tollgate replay -"
            ),
            InputErrorKind::Stopped => write!(
                f,
                "the reading of {name} ended without a reason after line {lines}; if it is \
                 compressed, give it decompressed on standard input"
            ),
        }
    }
}

impl std::error::Error for InputError {}

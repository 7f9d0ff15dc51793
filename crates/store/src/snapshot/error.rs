//! Why a directory cannot be used, and why a snapshot is not believed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tollgate_core::codec::Malformed;

/// Why a snapshot directory cannot be opened, read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Another process holds it.
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The file system refused something.
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
}

impl SnapshotError {
    /// Says what was being done when the file system refused.
    pub(super) fn doing(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| SnapshotError::Io { doing, path, error }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Locked { dir } => write!(
                f,
                "another tollgate is using the data directory {}; stop it, or give each its own",
                dir.display()
            ),
            SnapshotError::Io { doing, path, error } => {
                write!(f, "cannot {doing} {}: {error}; {}", path.display(), remedy(error.kind()))
            }
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SnapshotError::Locked { .. } => None,
            SnapshotError::Io { error, .. } => Some(error),
        }
    }
}

fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => {
            "let the user that tollgate runs as read and write there, or name another directory"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on that disk",
        io::ErrorKind::ReadOnlyFilesystem => "name a directory on a disk that can be written",
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory => "name a directory that is tollgate's alone",
        io::ErrorKind::NotFound => "make the directory again, or restart tollgate",
        io::ErrorKind::Unsupported => "name a directory on a local disk",
        _ => "look after that disk, or name another directory",
    }
}

/// Why a snapshot is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSnapshot {
    /// It does not begin as a snapshot does.
    Foreign,
    /// It is of a version that this tollgate does not know.
    Version(u32),
    /// It ends too early.
    Truncated,
    /// Its bytes are not those that were written.
    Checksum,
    /// Its bytes are as they were written, but say what cannot be.
    Malformed(&'static str),
}

impl From<Malformed> for InvalidSnapshot {
    fn from(Malformed(reason): Malformed) -> Self {
        InvalidSnapshot::Malformed(reason)
    }
}

impl fmt::Display for InvalidSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidSnapshot::Foreign => f.write_str("it is no snapshot of tollgate's"),
            InvalidSnapshot::Version(version) => write!(
                f,
                "it is of version {version}, and this tollgate reads version {}; the tollgate that \
                 wrote it can read it",
                super::VERSION
            ),
            InvalidSnapshot::Truncated => f.write_str("it ends too early"),
            InvalidSnapshot::Checksum => f.write_str("its checksum does not match: it was damaged"),
            InvalidSnapshot::Malformed(reason) => write!(f, "it says what cannot be: {reason}"),
        }
    }
}

impl std::error::Error for InvalidSnapshot {}

//! Errors of snapshot directories and snapshots.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tollgate_algorithms::codec::Malformed;

use super::format::{VERSION, VERSION_OF_TEXT_KEYS};

/// Why a snapshot directory cannot be opened, read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Another process has locked the directory.
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// A file system operation failed.
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl SnapshotError {
    /// Returns a function that adds the operation and the path to an I/O error.
    pub(super) fn on(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| SnapshotError::Io { operation, path, error }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Locked { dir } => write!(
                f,
                "the data directory {} is in use by another process; stop it or choose another directory",
                dir.display()
            ),
            SnapshotError::Io { operation, path, error } => {
                write!(
                    f,
                    "cannot {operation} {}: {error}; {}",
                    path.display(),
                    remedy(error.kind())
                )
            }
        }
    }
}

// The message contains the I/O error, so `source` does not repeat it.
impl std::error::Error for SnapshotError {}

fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => {
            "allow the user that tollgate runs as to read and write it, or choose another directory"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space on that disk",
        io::ErrorKind::ReadOnlyFilesystem => "choose a directory on a writable disk",
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory => "choose a directory that only tollgate uses",
        io::ErrorKind::NotFound => "create the directory again or restart tollgate",
        io::ErrorKind::Unsupported => "choose a directory on a local disk",
        _ => "check that disk or choose another directory",
    }
}

/// Why a snapshot is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSnapshot {
    /// The file does not start like a snapshot.
    Foreign,
    /// The version of the format is unknown.
    Version(u32),
    /// The file is truncated.
    Truncated,
    /// A checksum does not match.
    Checksum,
    /// The checksums match, but the content is invalid.
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
            InvalidSnapshot::Foreign => f.write_str("not a snapshot of tollgate"),
            InvalidSnapshot::Version(version) => write!(
                f,
                "unknown version {version}; this tollgate reads versions {VERSION_OF_TEXT_KEYS} and \
                 {VERSION}; use the tollgate that wrote it"
            ),
            InvalidSnapshot::Truncated => f.write_str("the file is truncated"),
            InvalidSnapshot::Checksum => {
                f.write_str("a checksum does not match; the file is damaged")
            }
            InvalidSnapshot::Malformed(reason) => write!(f, "invalid content: {reason}"),
        }
    }
}

impl std::error::Error for InvalidSnapshot {}

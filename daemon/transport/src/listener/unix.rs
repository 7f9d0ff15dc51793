//! Unix sockets: permissions, and the life of the socket file.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The owner and its group may connect.
const MODE: u32 = 0o660;
/// The length of the backlog.
const BACKLOG: u32 = 1_024;

/// A listener could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenError {
    message: String,
    is_taken: bool,
}

impl ListenError {
    fn unix(path: &Path, reason: &str) -> Self {
        let message = format!("cannot listen at unix:{}: {reason}", path.display());
        ListenError { message, is_taken: false }
    }

    fn taken(path: &Path) -> Self {
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

/// A Unix socket; dropping it removes its file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket file it created.
    file: (u64, u64),
}

impl UnixSocket {
    /// Listens at a path. A socket file that another process has left behind is replaced.
    pub(super) async fn bind(path: &Path) -> Result<Self, ListenError> {
        remove_stale_socket(path).await?;
        let failed = |error: io::Error| ListenError::unix(path, &reason(&error));
        let socket = tokio::net::UnixSocket::new_stream().map_err(failed)?;
        socket.bind(path).map_err(failed)?;
        // Set before `listen`, so that no client can connect before the permissions apply.
        fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
        let file = file(path).map_err(failed)?;
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        Ok(UnixSocket { listener, path: path.to_owned(), file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // Another process may listen there by now.
        let is_own = file(&self.path).is_ok_and(|file| file == self.file);
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("cannot remove the socket file {}: {error}", self.path.display());
        }
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Removes a socket file without a listener; leaves any other file in place.
async fn remove_stale_socket(path: &Path) -> Result<(), ListenError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {}
        Ok(_) => {
            let reason =
                "a file that is not a socket exists there; remove it or choose another path";
            return Err(ListenError::unix(path, reason));
        }
        // `bind` will report the same error.
        Err(_) => return Ok(()),
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(ListenError::taken(path)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| {
                ListenError::unix(path, &format!("cannot remove the old socket: {error}"))
            }),
        // Another process has removed it meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let reason = format!("cannot determine whether another process listens there: {error}");
            Err(ListenError::unix(path, &reason))
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "its directory does not exist; create it or choose another".to_owned()
        }
        ErrorKind::PermissionDenied => {
            "this user cannot write to its directory; choose another".to_owned()
        }
        ErrorKind::InvalidInput => format!("{error}; choose a shorter path"),
        _ => error.to_string(),
    }
}

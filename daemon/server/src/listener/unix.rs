//! A socket in the file system: who may open it, and what becomes of its file.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::error::ListenError;

/// The owner and its group may connect.
const MODE: u32 = 0o660;
/// How many peers may wait to be accepted.
const WAITING: u32 = 1_024;

/// A socket in the file system, whose file goes with it.
#[derive(Debug)]
pub(super) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The file that it made: device and inode.
    file: (u64, u64),
}

impl UnixSocket {
    /// Listens at a path. A file that another process has left there is replaced.
    pub(super) async fn bind(path: &Path) -> Result<Self, ListenError> {
        make_way(path).await?;
        let failed = |error: io::Error| ListenError::unix(path, &why(&error));
        let socket = tokio::net::UnixSocket::new_stream().map_err(failed)?;
        socket.bind(path).map_err(failed)?;
        // Nobody can connect before it listens, so nobody whom the permissions keep out.
        fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
        let file = file(path).map_err(failed)?;
        let listener = socket.listen(WAITING).map_err(failed)?;
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
        let is_own = file(&self.path).is_ok_and(|x| x == self.file);
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("{} is left behind: {error}", self.path.display());
        }
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    let value = fs::symlink_metadata(path)?;
    Ok((value.dev(), value.ino()))
}

/// Removes a socket that nobody listens at; anything else at this path stays.
async fn make_way(path: &Path) -> Result<(), ListenError> {
    match fs::symlink_metadata(path) {
        Ok(value) if value.file_type().is_socket() => {}
        Ok(_) => {
            let why = "there is a file that is no socket; name another path, or move that away";
            return Err(ListenError::unix(path, why));
        }
        // Why it cannot be looked at is what binding will say too.
        Err(_) => return Ok(()),
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(ListenError::taken(path)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| ListenError::unix(path, &format!("the old socket stays: {error}"))),
        // It has gone meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let why = format!("whether somebody listens there is not to be told: {error}");
            Err(ListenError::unix(path, &why))
        }
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "its directory is not there; make it, or name another".to_owned(),
        ErrorKind::PermissionDenied => {
            "its directory may not be written to by this user; name another".to_owned()
        }
        ErrorKind::InvalidInput => format!("{error}; name a shorter path"),
        _ => error.to_string(),
    }
}

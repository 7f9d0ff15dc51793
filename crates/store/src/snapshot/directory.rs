//! A directory that keeps the newest snapshot, for one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use tollgate_core::Micros;

use super::reader::ReadError;
use super::{InvalidSnapshot, QuarantinedSnapshot, RestoreReport, SaveReport, SnapshotError};
use crate::clock::{monotonic_micros, wall_micros};
use crate::memory::{MemoryStore, MemoryStoreBuilder};
use crate::sync::{Mutex, lock};

const LOCK: &str = "lock";
const SNAPSHOT: &str = "snapshot";
/// What is being written, until it takes the snapshot's place.
const UNFINISHED: &str = "snapshot.unfinished";
/// What was not believed; the time at which it was set aside follows.
const REJECTED: &str = "snapshot.rejected-";

/// How many rejected snapshots are kept: the newest. Somebody may want to look at them, but a disk
/// must not fill with them.
const MAX_REJECTED: usize = 3;

/// A directory that keeps the newest snapshot of a [`MemoryStore`]. One process at a time has it.
///
/// A snapshot holds counters, blocks, leases and reservations; not request ids, so a request that is
/// repeated after a restart is charged anew. Nothing is saved by itself: whoever has the directory
/// calls [`SnapshotDir::save`], every 5 s or so. What was charged since the last save began is what a
/// crash loses.
///
/// # Example
/// ```
/// use tollgate_store::{MemoryStore, SnapshotDir};
///
/// # let data = std::env::temp_dir().join(format!("tollgate-doc-{}", std::process::id()));
/// let dir = SnapshotDir::open(&data)?;
/// let (store, restored) = dir.restore(MemoryStore::builder())?;
/// if let Some(snapshot) = restored.quarantined {
///     println!("{} was not restored: {}", snapshot.path.display(), snapshot.reason);
/// }
/// // … decide …
/// dir.save(&store)?;
/// # drop(dir);
/// # std::fs::remove_dir_all(data)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SnapshotDir {
    path: PathBuf,
    /// The locked file. Its mutex is held while saving: there is one unfinished file.
    lock: Mutex<File>,
}

impl SnapshotDir {
    /// Opens a directory, which is made if it is not there, and locks it for this process. What an
    /// earlier one left unfinished is removed.
    ///
    /// # Errors
    /// Another process has it; or it cannot be made, read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        fs::create_dir_all(path).map_err(SnapshotError::doing("make the data directory", path))?;
        let file = path.join(LOCK);
        let lock = private().create(true).truncate(false).open(&file);
        let lock = lock.map_err(SnapshotError::doing("open", &file))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SnapshotError::Locked { dir: path.to_owned() },
            TryLockError::Error(error) => SnapshotError::doing("lock", &file)(error),
        })?;
        let unfinished = path.join(UNFINISHED);
        if let Err(error) = fs::remove_file(&unfinished)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(SnapshotError::doing("remove", &unfinished)(error));
        }
        Ok(SnapshotDir { path: path.to_owned(), lock: Mutex::new(lock) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Builds a store with what the newest snapshot holds, if there is one.
    ///
    /// One that is damaged, foreign or of a version that is not known is set aside and reported, and
    /// the store begins empty.
    ///
    /// # Errors
    /// The directory cannot be read; or what is no good cannot be set aside.
    pub fn restore(
        &self,
        builder: MemoryStoreBuilder,
    ) -> Result<(MemoryStore, RestoreReport), SnapshotError> {
        let path = self.path.join(SNAPSHOT);
        let reading = SnapshotError::doing("read", &path);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((builder.build(), RestoreReport::default()));
            }
            file => file.and_then(|file| Ok((file.metadata()?.len(), file))),
        };
        let (length, file) = match file {
            Ok(file) => file,
            Err(error) => return Err(reading(error)),
        };
        match builder.clone().restore_from(BufReader::with_capacity(BUFFER, file), length) {
            Ok(restored) => Ok(restored),
            Err(ReadError::Io(error)) => Err(reading(error)),
            Err(ReadError::InvalidSnapshot(reason)) => {
                let quarantined = Some(self.quarantine(&path, reason)?);
                Ok((builder.build(), RestoreReport { quarantined, ..RestoreReport::default() }))
            }
        }
    }

    /// Gives a snapshot that is no good another name, and forgets the oldest of those.
    fn quarantine(
        &self,
        from: &Path,
        reason: InvalidSnapshot,
    ) -> Result<QuarantinedSnapshot, SnapshotError> {
        let mut rejected: Vec<_> = fs::read_dir(&self.path)
            .map_err(SnapshotError::doing("list", &self.path))?
            .filter_map(|error| rejected_at(&error.ok()?.path()))
            .collect();
        rejected.sort_unstable();
        let name = |second: &u64| self.path.join(format!("{REJECTED}{second}"));
        // Two of one second have two names, in their order.
        let second = rejected.last().map_or(0, |rejected| rejected.saturating_add(1));
        let path = name(&second.max(wall_micros() / 1_000_000));
        fs::rename(from, &path).map_err(SnapshotError::doing("quarantine", from))?;
        let too_many = (rejected.len() + 1).saturating_sub(MAX_REJECTED);
        for old in rejected.iter().take(too_many).map(name) {
            fs::remove_file(&old).map_err(SnapshotError::doing("remove", &old))?;
        }
        Ok(QuarantinedSnapshot { path, reason })
    }

    /// Writes a snapshot of the store, which takes the place of the one before once it is whole and
    /// on the disk.
    ///
    /// It blocks its thread for as long as the disk takes, and no check for longer than it takes to
    /// copy 256 keys or 64 KiB. A million keys of 24 bytes are 50 MB and take some 0.1 s.
    ///
    /// # Errors
    /// It cannot be written. The one before is then still there.
    pub fn save(&self, store: &MemoryStore) -> Result<SaveReport, SnapshotError> {
        let _one_at_a_time = lock(&self.lock);
        let begun = monotonic_micros();
        let unfinished = self.path.join(UNFINISHED);
        let saved = self.replace(&unfinished, store);
        if saved.is_err() {
            // It may be what fills the disk. Should this fail too, the next save writes over it.
            let _ = fs::remove_file(&unfinished);
        }
        let took = Micros::new(monotonic_micros().saturating_sub(begun));
        saved.map(|saved| SaveReport { took, ..saved })
    }

    fn replace(&self, unfinished: &Path, store: &MemoryStore) -> Result<SaveReport, SnapshotError> {
        let report = write(unfinished, store).map_err(SnapshotError::doing("write", unfinished))?;
        let snapshot = self.path.join(SNAPSHOT);
        fs::rename(unfinished, &snapshot).map_err(SnapshotError::doing("replace", &snapshot))?;
        sync_directory(&self.path).map_err(SnapshotError::doing("write", &self.path))?;
        Ok(report)
    }
}

const BUFFER: usize = 256 * 1024;

fn write(path: &Path, store: &MemoryStore) -> io::Result<SaveReport> {
    let file = private().create(true).truncate(true).open(path)?;
    let report = store.write_snapshot(BufWriter::with_capacity(BUFFER, &file))?;
    file.sync_all()?;
    Ok(report)
}

/// Files that only their owner reads: keys are often names or addresses.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A new name is safe once its directory is on the disk. Elsewhere than on Unix a directory cannot
/// be opened, and names are written with what they name.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// When a file was set aside, if it was.
fn rejected_at(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(REJECTED)?.parse().ok()
}

//! A directory for the newest snapshot, used by one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use tollgate_algorithms::Micros;

use super::error::{InvalidSnapshot, SnapshotError};
use super::reader::ReadError;
use super::report::{QuarantinedSnapshot, RestoreReport, SaveReport};
use crate::clock::{monotonic_micros, wall_micros};
use crate::memory::{MemoryStore, MemoryStoreBuilder};
use crate::sync::{Mutex, lock};

const LOCK: &str = "lock";
const SNAPSHOT: &str = "snapshot";
/// The file being written, until it replaces the snapshot.
const UNFINISHED: &str = "snapshot.unfinished";
/// The prefix of a quarantined snapshot; the time of the quarantine follows, in seconds.
const QUARANTINED: &str = "snapshot.rejected-";

/// How many quarantined snapshots are kept: the newest, so that they do not fill the disk.
const MAX_QUARANTINED: usize = 3;

/// A directory for the newest snapshot of a [`MemoryStore`], locked for one process.
///
/// A snapshot contains counters, blocks, leases and reservations. It does not contain request ids,
/// so a request that is repeated after a restart is charged again. Call [`SnapshotDir::save`]
/// regularly, for example every 5 s: a crash loses the charges made since the last save started.
///
/// # Examples
/// ```
/// use tollgate_state::{MemoryStore, SnapshotDir};
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
    /// The lock file. The mutex is held while saving, because saves share one unfinished file.
    lock: Mutex<File>,
}

impl SnapshotDir {
    /// Opens a directory, and creates it if necessary; locks it for this process. Removes an
    /// unfinished snapshot of an earlier process.
    ///
    /// # Errors
    /// Returns an error if another process has locked the directory, or if it cannot be created,
    /// read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        fs::create_dir_all(path).map_err(SnapshotError::on("create the data directory", path))?;
        let file = path.join(LOCK);
        let lock = private().create(true).truncate(false).open(&file);
        let lock = lock.map_err(SnapshotError::on("open", &file))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SnapshotError::Locked { dir: path.to_owned() },
            TryLockError::Error(error) => SnapshotError::on("lock", &file)(error),
        })?;
        let unfinished = path.join(UNFINISHED);
        if let Err(error) = fs::remove_file(&unfinished)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(SnapshotError::on("remove", &unfinished)(error));
        }
        Ok(SnapshotDir { path: path.to_owned(), lock: Mutex::new(lock) })
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Builds a store from the newest snapshot, if there is one.
    ///
    /// An invalid snapshot (damaged, foreign, or of an unknown version) is quarantined: it is
    /// renamed and reported, and the store starts empty.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read, or if an invalid snapshot cannot be
    /// renamed.
    pub fn restore(
        &self,
        builder: MemoryStoreBuilder,
    ) -> Result<(MemoryStore, RestoreReport), SnapshotError> {
        let path = self.path.join(SNAPSHOT);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((builder.build(), RestoreReport::default()));
            }
            file => file.and_then(|file| Ok((file.metadata()?.len(), file))),
        };
        let (length, file) = file.map_err(SnapshotError::on("read", &path))?;
        match builder.clone().restore_from(BufReader::with_capacity(BUFFER, file), length) {
            Ok(restored) => Ok(restored),
            Err(ReadError::Io(error)) => Err(SnapshotError::on("read", &path)(error)),
            Err(ReadError::Invalid(reason)) => {
                let quarantined = Some(self.quarantine(&path, reason)?);
                Ok((builder.build(), RestoreReport { quarantined, ..RestoreReport::default() }))
            }
        }
    }

    /// Renames an invalid snapshot, and deletes the oldest quarantined snapshots.
    fn quarantine(
        &self,
        from: &Path,
        reason: InvalidSnapshot,
    ) -> Result<QuarantinedSnapshot, SnapshotError> {
        let mut quarantined: Vec<_> = fs::read_dir(&self.path)
            .map_err(SnapshotError::on("list", &self.path))?
            .filter_map(|entry| quarantined_at(&entry.ok()?.path()))
            .collect();
        quarantined.sort_unstable();
        let name = |second: &u64| self.path.join(format!("{QUARANTINED}{second}"));
        // Two snapshots of the same second need different names, in order.
        let second = quarantined.last().map_or(0, |last| last.saturating_add(1));
        let path = name(&second.max(wall_micros() / 1_000_000));
        fs::rename(from, &path).map_err(SnapshotError::on("quarantine", from))?;
        let too_many = (quarantined.len() + 1).saturating_sub(MAX_QUARANTINED);
        for old in quarantined.iter().take(too_many).map(name) {
            fs::remove_file(&old).map_err(SnapshotError::on("remove", &old))?;
        }
        Ok(QuarantinedSnapshot { path, reason })
    }

    /// Writes a snapshot of the store, which atomically replaces the previous one when it is
    /// complete and on disk.
    ///
    /// This blocks the calling thread until the disk is done, and other threads at most for the
    /// time it takes to copy 256 keys or 64 KiB. A million keys of 24 bytes need 50 MB and about
    /// 0.1 s.
    ///
    /// # Errors
    /// Returns an error if the snapshot cannot be written. The previous snapshot stays.
    pub fn save(&self, store: &MemoryStore) -> Result<SaveReport, SnapshotError> {
        let _one_save_at_a_time = lock(&self.lock);
        let start = monotonic_micros();
        let unfinished = self.path.join(UNFINISHED);
        let saved = self.replace(&unfinished, store);
        if saved.is_err() {
            // Free the disk space. If this fails, too, the next save overwrites the file.
            let _ = fs::remove_file(&unfinished);
        }
        let took = Micros::new(monotonic_micros().saturating_sub(start));
        saved.map(|saved| SaveReport { took, ..saved })
    }

    fn replace(&self, unfinished: &Path, store: &MemoryStore) -> Result<SaveReport, SnapshotError> {
        let report = write(unfinished, store).map_err(SnapshotError::on("write", unfinished))?;
        let snapshot = self.path.join(SNAPSHOT);
        fs::rename(unfinished, &snapshot).map_err(SnapshotError::on("replace", &snapshot))?;
        sync_directory(&self.path).map_err(SnapshotError::on("write", &self.path))?;
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

/// Options for files that only their owner can read: keys are often names or addresses.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Syncs a directory, so that a rename survives a crash. Other systems than Unix cannot open a
/// directory, and need no sync.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Returns when a file was quarantined, in seconds since the epoch, if it was.
fn quarantined_at(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(QUARANTINED)?.parse().ok()
}

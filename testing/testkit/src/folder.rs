//! Temporary folders.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A temporary folder, removed on drop.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates an empty folder.
    #[must_use]
    pub fn create() -> Self {
        let random = RandomState::new().hash_one(0);
        // Short, because the path of a Unix socket is limited to about a hundred bytes.
        let path = env::temp_dir().join(format!("tollgate-{random:016x}"));
        fs::create_dir(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Self { path }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file in the folder, and returns its path.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, contents)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is no reason to fail a test.
        let _ = fs::remove_dir_all(&self.path);
    }
}

//! Temporary folders.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A temporary folder, which goes when this goes.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn create() -> Self {
        let random = RandomState::new().hash_one(0);
        // Short, because the path of a socket in it may have a hundred bytes only.
        let path = env::temp_dir().join(format!("tollgate-{random:016x}"));
        fs::create_dir(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays is a nuisance, but no reason to fail a test.
        let _ = fs::remove_dir_all(&self.path);
    }
}

//! A copy of the tree to apply patches to.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::patch::Patch;
use crate::{process, repository};

#[derive(Debug)]
pub(super) struct Scratch {
    root: PathBuf,
    pub(super) tree: PathBuf,
    /// The target folder of the repository, so that dependencies are those of the tests. Each patch
    /// rebuilds only the crates that it changes and their dependents.
    pub(super) build: PathBuf,
    pub(super) logs: PathBuf,
}

impl Scratch {
    /// Makes the copy equal to the tree. Equal files keep their modification times, so cargo does
    /// not rebuild them.
    pub(super) fn prepare(root: &Path) -> Result<Self> {
        let root = root.canonicalize()?;
        let home = root.join("target/mutants");
        let [tree, logs] = ["tree", "logs"].map(|name| home.join(name));
        let build = root.join("target");
        for folder in [&tree, &logs] {
            fs::create_dir_all(folder)?;
        }
        let scratch = Self { root, tree, build, logs };
        let wanted = repository::files(&scratch.root)?;
        for name in &wanted {
            scratch.restore(name)?;
        }
        scratch.remove_others(&wanted.into_iter().collect())?;
        Ok(scratch)
    }

    fn restore(&self, name: &str) -> Result<()> {
        let (original, copy) = (self.root.join(name), self.tree.join(name));
        let wanted = match fs::read(&original) {
            Ok(bytes) => bytes,
            // The patch added it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(fs::remove_file(copy)?),
            Err(error) => return Err(error).with_context(|| original.display().to_string()),
        };
        if fs::read(&copy).ok().as_ref() == Some(&wanted) {
            return Ok(());
        }
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder)?;
        }
        // Written, not copied with its modification time: cargo rebuilds files that are newer than
        // the last build.
        fs::write(&copy, wanted).with_context(|| copy.display().to_string())
    }

    fn remove_others(&self, wanted: &BTreeSet<String>) -> Result<()> {
        let mut folders = vec![self.tree.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let name = entry.path().strip_prefix(&self.tree)?.to_string_lossy().into_owned();
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else if !wanted.contains(&name) {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }

    /// Applies the patch.
    pub(super) fn apply(&self, patch: &Patch) -> Result<()> {
        let mut apply = Command::new("git");
        apply.current_dir(&self.tree).args(["apply", "--whitespace=nowarn"]).arg(&patch.path);
        // The copy is inside the repository, where git would silently apply nothing.
        apply.env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        process::output(apply)?;
        let unchanged = |name: &String| {
            fs::read(self.tree.join(name)).ok() == fs::read(self.root.join(name)).ok()
        };
        ensure!(!patch.touches.iter().any(unchanged), "git applied nothing");
        Ok(())
    }

    /// Reverts the patch. A stale patch may name files that no longer exist.
    pub(super) fn revert(&self, patch: &Patch) -> Result<()> {
        let known = patch.touches.iter().filter(|name| self.root.join(name).exists());
        known.into_iter().try_for_each(|name| self.restore(name))
    }
}

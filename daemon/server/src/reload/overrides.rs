//! Override files. Each is read again only when it has changed, because it may have a million rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use tollgate::{Overrides, Policies};
use tollgate_engine::ActiveConfig;

use super::files::Files;
use tollgate_config::{Config, OverridesFile, read_overrides};

/// Override files, with their rows as last read.
#[derive(Debug, Default)]
pub(crate) struct OverridesFiles(HashMap<PathBuf, LoadedFile>);

#[derive(Debug)]
struct LoadedFile {
    files: Files,
    rows: Overrides,
    /// Why the current content was rejected, if it was.
    error: Option<String>,
}

impl OverridesFiles {
    /// Whether one of them has changed.
    pub(super) fn have_changed(&mut self) -> bool {
        // Polls every file, without short-circuiting: a change is reported at the second poll.
        let changed: Vec<_> = self.0.values_mut().map(|file| file.files.have_changed()).collect();
        changed.contains(&true)
    }

    /// Those that differ from the rows in use.
    pub(super) fn different(&self) -> impl Iterator<Item = &Path> {
        self.0.values().flat_map(|file| file.files.different())
    }

    /// Why some of the current files were rejected, if they were.
    pub(super) fn error(&self) -> Option<String> {
        let mut all: Vec<_> = self.0.values().filter_map(|file| file.error.as_deref()).collect();
        all.sort_unstable();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Builds the state for a configuration, including its override files.
    pub(crate) fn build(&mut self, config: &Config) -> Result<ActiveConfig, String> {
        let mut active = ActiveConfig::new(config)?;
        self.add_to(&mut active.policies, &config.overrides_files)?;
        active.rules.check(&active.policies).map_err(|error| error.to_string())?;
        Ok(active)
    }

    /// Adds the rows of the files to the policies. A file that has not changed is not read again; a
    /// file that cannot be used keeps its previous rows.
    ///
    /// # Errors
    /// A file that has no previous rows cannot be used; lists every mistake in each such file.
    fn add_to(&mut self, policies: &mut Policies, files: &[OverridesFile]) -> Result<(), String> {
        self.0.retain(|path, _| files.iter().any(|file| file.path == *path));
        let mut errors = Vec::new();
        for OverridesFile { policy, path, .. } in files {
            let result = self.rows(path).and_then(|rows| {
                // A program may have built a configuration that names a missing policy.
                policies.set_additional_overrides(policy, rows).map_err(|error| error.to_string())
            });
            errors.extend(result.err());
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
    }

    /// The rows of a file, which is read if it has changed.
    fn rows(&mut self, path: &Path) -> Result<&Overrides, String> {
        let loaded = match self.0.entry(path.to_owned()) {
            Entry::Vacant(entry) => {
                let (files, rows) = read(path);
                entry.insert(LoadedFile { files, rows: rows?, error: None })
            }
            Entry::Occupied(entry) => {
                let loaded = entry.into_mut();
                if loaded.files.differ_now() {
                    let (files, rows) = read(path);
                    loaded.files = files;
                    match rows {
                        Ok(rows) => (loaded.rows, loaded.error) = (rows, None),
                        Err(error) => loaded.error = Some(error),
                    }
                }
                loaded
            }
        };
        Ok(&loaded.rows)
    }
}

/// Reads a file, which is watched from before, so that the next poll finds a change in between.
fn read(path: &Path) -> (Files, Result<Overrides, String>) {
    let files = Files::new([path.to_owned()]);
    let rows = read_overrides(path)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    (files, rows)
}

//! Override files. Each is read again only when it has changed, because it may have a million rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tollgate::{Overrides, Policies};
use tollgate_engine::ActiveConfig;

use super::files::Files;
use crate::config::{Config, OverridesFile, read_overrides};

/// Override files, with their rows as last read.
#[derive(Debug, Default)]
pub(crate) struct OverridesFiles(HashMap<PathBuf, Known>);

#[derive(Debug)]
struct Known {
    files: Files,
    rows: Overrides,
    /// Why the current file was rejected, if it was.
    refusal: Option<String>,
}

impl OverridesFiles {
    /// Whether one of them has changed.
    pub(super) fn have_changed(&mut self) -> bool {
        // Polls every file, without short-circuiting: a change is reported at the second poll.
        let changed: Vec<_> = self.0.values_mut().map(|value| value.files.have_changed()).collect();
        changed.contains(&true)
    }

    /// Why some of the current files were rejected, if they were.
    pub(super) fn refusal(&self) -> Option<String> {
        let mut all: Vec<_> =
            self.0.values().filter_map(|value| value.refusal.as_deref()).collect();
        all.sort_unstable();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Builds the state for a configuration, including its override files.
    ///
    /// # Errors
    /// As [`OverridesFiles::put_into`] and [`ActiveConfig::new`]; or the rules are invalid.
    pub(crate) fn build(&mut self, config: &Config) -> Result<ActiveConfig, String> {
        let mut active = ActiveConfig::new(config)?;
        self.put_into(&mut active.policies, &config.overrides_files)?;
        active.rules.check(&active.policies).map_err(|error| error.to_string())?;
        Ok(active)
    }

    /// Adds the rows of the files to the policies. A file that has not changed is not read again; a
    /// file that cannot be used keeps its previous rows.
    ///
    /// # Errors
    /// A file that has no previous rows cannot be used; lists every mistake in each such file.
    fn put_into(&mut self, policies: &mut Policies, files: &[OverridesFile]) -> Result<(), String> {
        self.0.retain(|path, _| files.iter().any(|file| file.path == *path));
        let mut wrong = Vec::new();
        for file in files {
            let put = self.rows(&file.path).and_then(|rows| {
                policies
                    .set_additional_overrides(&file.policy, rows)
                    .map_err(|error| error.to_string())
            });
            wrong.extend(put.err());
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn rows(&mut self, path: &Path) -> Result<&Overrides, String> {
        if self.0.get(path).is_none_or(|x| x.files.are_others()) {
            // Watched from before it is read, so that the next poll finds a change in between.
            let files = Files::of([path.to_owned()]);
            let read = read_overrides(path).map_err(|errors| {
                errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            });
            match (read, self.0.get_mut(path)) {
                (Ok(rows), _) => {
                    self.0.insert(path.to_owned(), Known { files, rows, refusal: None });
                }
                (Err(why), Some(known)) => (known.files, known.refusal) = (files, Some(why)),
                (Err(why), None) => return Err(why),
            }
        }
        let known = self.0.get(path).ok_or_else(|| format!("{}: not loaded", path.display()));
        Ok(&known?.rows)
    }
}

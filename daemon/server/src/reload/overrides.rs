//! Files of overrides, each read again only when it has changed: one may have a million rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tollgate::{Overrides, Policies};

use super::files::Files;
use crate::config::{Config, OverridesFile, read_overrides};
use crate::live::Live;

/// Files of overrides with what they said when they were last read.
#[derive(Debug, Default)]
pub(crate) struct OverridesFiles(HashMap<PathBuf, Known>);

#[derive(Debug)]
struct Known {
    files: Files,
    rows: Overrides,
    /// Why what the file says now is not what is in force, if so.
    refusal: Option<String>,
}

impl OverridesFiles {
    /// Whether one of them has changed.
    pub(super) fn have_changed(&mut self) -> bool {
        // Each has to be looked at: a change must be found by two looks.
        let changed: Vec<_> = self.0.values_mut().map(|value| value.files.have_changed()).collect();
        changed.contains(&true)
    }

    /// Why what files say now is not what is in force, if so.
    pub(super) fn refusal(&self) -> Option<String> {
        let mut all: Vec<_> =
            self.0.values().filter_map(|value| value.refusal.as_deref()).collect();
        all.sort_unstable();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// What is to be in force by a configuration with its files of overrides.
    ///
    /// # Errors
    /// As [`OverridesFiles::put_into`] and [`Live::of`]; or rules cannot be followed.
    pub(crate) fn live(&mut self, config: &Config) -> Result<Live, String> {
        let mut live = Live::of(config)?;
        self.put_into(&mut live.policies, &config.overrides_files)?;
        live.rules.check(&live.policies).map_err(|error| error.to_string())?;
        Ok(live)
    }

    /// Gives policies what their files say; one that says just what it said is not read again, and
    /// of one that cannot be used holds what it said before.
    ///
    /// # Errors
    /// Files that have said nothing before cannot be used; all that is wrong with each.
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
            // Fixed before it is read: if it changes meanwhile, the next look finds that.
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
        let known = self.0.get(path).ok_or_else(|| format!("{}: it is not known", path.display()));
        Ok(&known?.rows)
    }
}

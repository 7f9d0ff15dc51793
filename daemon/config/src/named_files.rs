//! Problems with the files that a configuration names, tied to the fields that name them.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use tollgate_document::{ConfigError, ConfigErrors, Diagnostics};

use crate::layers::LoadedConfig;
use crate::overrides_file::read_overrides;
use crate::tree::{Content, Entry};

/// A file that cannot be used, found by the part of the daemon that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the daemon constructs it")]
pub struct FileProblem {
    /// The path of the field that names the file, such as `tokens[0].token_file`.
    pub field: String,
    /// The file, if the field names one.
    pub file: Option<PathBuf>,
    /// The file and its problem, with the remedy.
    pub message: String,
}

impl FileProblem {
    /// A problem of the file that a field names.
    pub fn new(field: &str, file: &Path, reason: impl fmt::Display) -> Self {
        FileProblem {
            field: field.to_owned(),
            file: Some(file.to_owned()),
            message: format!("{}: {reason}", file.display()),
        }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FileProblem {}

impl LoadedConfig {
    /// Checks the password files of the store and the files of overrides, and adds the problems that
    /// the daemon found in the files that only it can read.
    ///
    /// # Errors
    /// All problems, each at the position of the field that names the file.
    pub fn check_files(&self, problems: Vec<FileProblem>) -> Result<(), ConfigErrors> {
        let diagnostics = Diagnostics::default();
        for error in self.config.store.password_file_errors() {
            let origin = error.field().and_then(|field| find(&self.tree, field));
            diagnostics.add(with_origin_of(error, origin));
        }
        for FileProblem { field, file, message } in problems {
            let error = ConfigError::new(message).with_field(&*field);
            let error = match &file {
                Some(file) => error.with_location(file, None, None),
                None => error,
            };
            diagnostics.add(with_origin_of(error, find(&self.tree, &field)));
        }
        self.check_overrides(&diagnostics);
        if diagnostics.is_empty() { Ok(()) } else { Err(self.errors(diagnostics)) }
    }

    fn check_overrides(&self, diagnostics: &Diagnostics) {
        let mut policies = self.config.policies.clone();
        // Several policies may share a file, and one may have a million rows.
        let mut files = HashMap::new();
        for overrides_file in &self.config.overrides_files {
            let (policy, path) = (&overrides_file.policy, &overrides_file.path);
            // Not by `find`: the name of a policy may contain a dot.
            let entry = ["policies", policy, "overrides_file"]
                .iter()
                .try_fold(&self.tree, |entry, name| entry.get(name));
            let field = format!("policies.{policy}.overrides_file");
            let report = |error: ConfigError| {
                diagnostics.add(with_origin_of(error.with_field(&*field), entry));
            };
            match files.entry(path).or_insert_with(|| read_overrides(path)) {
                Ok(rows) => {
                    if let Err(error) = policies.set_additional_overrides(policy, rows) {
                        let message = format!("{}: {error}", path.display());
                        report(ConfigError::new(message).with_location(path, None, None));
                    }
                }
                Err(errors) => errors.iter().for_each(|error| {
                    let (line, column) = (error.line, error.column);
                    report(ConfigError::new(error.to_string()).with_location(path, line, column));
                }),
            }
        }
    }
}

/// The value at a path such as `tokens[0].token_file`.
pub(super) fn find<'a>(tree: &'a Entry, path: &str) -> Option<&'a Entry> {
    path.split('.').try_fold(tree, |entry, part| match part.split_once('[') {
        None => entry.get(part),
        Some((name, index)) => match &entry.get(name)?.content {
            Content::List(all) => all.get(index.trim_end_matches(']').parse::<usize>().ok()?),
            _ => None,
        },
    })
}

pub(super) fn with_origin_of(error: ConfigError, entry: Option<&Entry>) -> ConfigError {
    match entry {
        Some(entry) => error.with_origin(entry.origin.clone()),
        None => error,
    }
}

//! Problems with the files that a configuration names, tied to the fields that name them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tollgate_document::{Body, ConfigError, ConfigErrors, Diagnostics, Node};

use crate::layers::LoadedConfig;
use crate::overrides_file::{OverridesFileError, read_overrides};

/// A file that cannot be used, found by the part of the daemon that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the daemon makes it")]
pub struct FileProblem {
    /// The path of the field that names the file, such as `listen.tls.cert` or `tokens[0].token_file`.
    pub field: String,
    /// The file, if the field names one.
    pub file: Option<PathBuf>,
    /// The problem, and its remedy.
    pub message: String,
}

impl LoadedConfig {
    /// Checks the password file of the store and the files of overrides, and adds the problems that
    /// the daemon found in the files that only it can read.
    ///
    /// # Errors
    /// All problems, each at the position of the field that names the file.
    pub fn check_files(&self, problems: Vec<FileProblem>) -> Result<(), ConfigErrors> {
        let diagnostics = Diagnostics::default();
        self.check_store(&diagnostics);
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

    fn check_store(&self, diagnostics: &Diagnostics) {
        if let Err(error) = self.config.store.check_password_file() {
            let node = find(&self.tree, "store.password_file");
            diagnostics.add(with_origin_of(error, node));
        }
    }

    fn check_overrides(&self, diagnostics: &Diagnostics) {
        let mut policies = self.config.policies.clone();
        // Several policies may share a file, and one may have a million rows.
        let mut files = HashMap::new();
        for overrides_file in &self.config.overrides_files {
            let (policy, path) = (&overrides_file.policy, &overrides_file.path);
            // Not by `find`: the name of a policy may contain a dot.
            let node = ["policies", policy, "overrides_file"]
                .iter()
                .try_fold(&self.tree, |node, name| node.get(name));
            let field = format!("policies.{policy}.overrides_file");
            let report = |error: ConfigError| {
                diagnostics.add(with_origin_of(error.with_field(&*field), node));
            };
            match files.entry(path).or_insert_with(|| read_overrides(path)) {
                Ok(rows) => {
                    if let Err(error) = policies.set_additional_overrides(policy, rows) {
                        let message = format!("{}: {error}", path.display());
                        report(ConfigError::new(message).with_location(path, None, None));
                    }
                }
                Err(errors) => errors.iter().for_each(|error| report(row_error(path, error))),
            }
        }
    }
}

fn row_error(file: &Path, error: &OverridesFileError) -> ConfigError {
    ConfigError::new(error.to_string()).with_location(file, error.line(), error.column())
}

/// The node at a path such as `tokens[0].token_file`.
fn find<'a>(tree: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(tree, |node, part| match part.split_once('[') {
        None => node.get(part),
        Some((name, index)) => match &node.get(name)?.body {
            Body::List(nodes) => nodes.get(index.trim_end_matches(']').parse::<usize>().ok()?),
            _ => None,
        },
    })
}

fn with_origin_of(error: ConfigError, node: Option<&Node>) -> ConfigError {
    match node {
        Some(node) => error.with_origin(node.origin.clone()),
        None => error,
    }
}

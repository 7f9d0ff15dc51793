//! Layered loading: file, environment variables, flags.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate_document::{
    Body, ConfigError, ConfigErrors, Diagnostics, Node, Origin, YamlLimits, parse,
};

use super::environment::LayerValue;
use super::fields::SectionReader;
use super::named_files::find;
use super::schema::ROOT;
use super::tree::Entry;
use super::validate::Validator;
use super::{Config, environment, files, print, read, samples, secrets};

/// Bounds on the configuration file, which has seven levels.
pub(super) const LIMITS: YamlLimits =
    YamlLimits { values: 250_000, depth: 32, remedy: "move many overrides into overrides_file" };

/// The maximum size of a configuration file in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The sources of a configuration, which [`read`](Layers::read) merges. Flags take precedence over
/// environment variables, and these over the file.
///
/// # Example
/// ```
/// use tollgate_config::Layers;
/// let layers = Layers::new().yaml("limits: { checks: 8 }");
/// let layers = layers.environment([("TOLLGATE_LIMITS__CHECKS".into(), "4".into())]);
/// assert_eq!(layers.read()?.config.limits.checks, 4);
/// # Ok::<(), tollgate_config::ConfigErrors>(())
/// ```
#[derive(Default)]
pub struct Layers {
    file: Option<File>,
    base: Option<Node>,
    /// Values of variables and flags; later ones take precedence.
    values: Vec<LayerValue>,
    diagnostics: Diagnostics,
    unreadable: Option<ConfigErrors>,
}

struct File {
    name: Option<Arc<str>>,
    directory: PathBuf,
    text: Arc<str>,
}

/// A configuration, with the origin of each value.
#[non_exhaustive]
pub struct LoadedConfig {
    /// The configuration of the daemon.
    pub config: Config,
    pub(super) tree: Entry,
    file: Option<File>,
}

impl Layers {
    /// No source: the defaults.
    #[must_use]
    pub fn new() -> Self {
        Layers::default()
    }

    /// Adds the file at a path. [`read`](Self::read) reports an error if the file cannot be read.
    /// Paths in the file are relative to its directory.
    #[must_use]
    pub fn file(mut self, path: &Path) -> Self {
        let name: Arc<str> = path.display().to_string().into();
        match text_of(path) {
            Ok(text) => return self.text(Some(name), path, &text),
            Err(error) => self.unreadable = Some(ConfigError::new(error).in_file(&name).into()),
        }
        self
    }

    /// Adds the text of a file.
    #[must_use]
    pub fn yaml(self, text: &str) -> Self {
        self.text(None, Path::new(""), text)
    }

    /// Adds the text of a file with a name, which precedes each error.
    #[must_use]
    pub fn named_yaml(self, name: &str, text: &str) -> Self {
        self.text(Some(name.into()), Path::new(name), text)
    }

    fn text(mut self, name: Option<Arc<str>>, path: &Path, text: &str) -> Self {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        self.file = Some(File { name, directory, text: text.into() });
        self
    }

    /// Uses the sample policies instead of a file. Clients on this machine may operate.
    #[must_use]
    pub fn samples(mut self) -> Self {
        self.base = Some(samples::tree());
        self
    }

    /// Uses one policy named `default` instead of a file. Clients on this machine may operate.
    #[must_use]
    pub fn limits(mut self, limits: &str) -> Self {
        let origin = Origin::Flag("LIMITS");
        let texts = limits.split(';').map(str::trim);
        let texts = texts.map(|t| Node::text(t, origin.clone())).collect();
        let limits = Node { origin, body: Body::List(texts), quoted: false };
        let policies = limits.in_field("limits").in_field("default").in_field("policies");
        self.base = Some(samples::with_local_operators(policies));
        self
    }

    /// Adds environment variables: `TOLLGATE_`, followed by the path of a field with `__` between
    /// its parts.
    #[must_use]
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.values.extend(environment::read(variables, &self.diagnostics));
        self
    }

    /// Adds a flag, with the path of its field. It takes precedence over all earlier sources.
    #[must_use]
    pub fn flag(mut self, flag: &'static str, field: &str, value: &str) -> Self {
        match environment::find(field.split('.')) {
            Ok((path, field)) => {
                let node = environment::node(field, value, Origin::Flag(flag));
                self.values.push(LayerValue { path, field, node });
            }
            Err(error) => self.diagnostics.add(ConfigError::new(error)),
        }
        self
    }

    /// Merges and reads all sources.
    ///
    /// # Errors
    /// All mistakes in all sources.
    pub fn read(self) -> Result<LoadedConfig, ConfigErrors> {
        self.combine(true)
    }

    /// Reads a configuration whose store may be chosen later: fields of `store` are not checked
    /// against each other if `store.url` is missing.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn partial(self) -> Result<LoadedConfig, ConfigErrors> {
        self.combine(false)
    }

    fn combine(self, is_complete: bool) -> Result<LoadedConfig, ConfigErrors> {
        let Layers { file, base, values, diagnostics, unreadable } = self;
        if let Some(error) = unreadable {
            return Err(error);
        }
        let tree = match (&file, base) {
            (Some(file), _) => match parse(LIMITS, &file.text, &diagnostics) {
                Ok(tree) => tree,
                Err(error) => {
                    diagnostics.add(error);
                    return Err(errors(diagnostics, Some(file), None));
                }
            },
            (None, Some(tree)) => tree,
            (None, None) => Node::nothing(Origin::Default),
        };
        let directory = file.as_ref().map_or(Path::new(""), |file| &file.directory);
        let validator = Validator { directory, diagnostics: &diagnostics };
        let origin = tree.origin.clone();
        let mut tree = validator.section(tree, &ROOT, "", &origin);
        for LayerValue { path, field, node } in values {
            let origin = node.origin.clone();
            let entry = validator.value(node, &field.kind, &path.join("."), &origin);
            tree.set(&path, entry);
        }
        let config = read::config(&SectionReader::new(&tree, &ROOT, &diagnostics), is_complete);
        match config {
            Ok(config) if diagnostics.is_empty() => Ok(LoadedConfig { config, tree, file }),
            _ => Err(errors(diagnostics, file.as_ref(), Some(&tree))),
        }
    }
}

fn errors(diagnostics: Diagnostics, file: Option<&File>, tree: Option<&Entry>) -> ConfigErrors {
    let errors = diagnostics.into_errors(file.and_then(|file| file.name.as_ref()));
    match file {
        Some(file) => errors.with_source(Arc::clone(&file.text), secrets::find(&file.text, tree)),
        None => errors,
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let bytes = files::read(path, &mut { MAX_BYTES })?;
    files::utf8(bytes.ok_or_else(|| format!("longer than the maximum of {MAX_BYTES} bytes"))?)
}

/// Omits the values, which may be secret.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().and_then(|file| file.name.as_deref());
        f.debug_struct("Layers").field("file", &file).finish_non_exhaustive()
    }
}

/// Omits the texts, which may be secret.
impl fmt::Debug for LoadedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedConfig").field("config", &self.config).finish_non_exhaustive()
    }
}

impl LoadedConfig {
    /// The complete configuration as YAML, with secrets masked. With `origins`, a comment states
    /// the origin of each value that is not a default.
    #[must_use]
    pub fn print(&self, origins: bool) -> String {
        let name = self.file.as_ref().and_then(|file| file.name.as_deref());
        print::yaml(&self.tree, name, origins)
    }

    /// The configuration, with its text for the dashboard.
    #[must_use]
    pub fn into_config(self) -> Config {
        let effective_yaml = Some(self.print(true).into());
        Config { effective_yaml, ..self.config }
    }

    /// Whether a field is set, in any source.
    #[must_use]
    pub fn is_set(&self, field: &str) -> bool {
        find(&self.tree, field).is_some()
    }

    /// The name of the file.
    pub(super) fn file_name(&self) -> Option<&Arc<str>> {
        self.file.as_ref()?.name.as_ref()
    }

    /// Diagnostics as errors, with the text of the file.
    pub(super) fn errors(&self, diagnostics: Diagnostics) -> ConfigErrors {
        errors(diagnostics, self.file.as_ref(), Some(&self.tree))
    }
}

impl Config {
    /// Reads a file. If it has no `store.url`, the other fields of `store` are checked when the
    /// store is opened.
    ///
    /// # Errors
    /// The file cannot be read or has mistakes. Each error contains file, line, field, value and
    /// remedy.
    pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
        Layers::new().file(path).partial().map(LoadedConfig::into_config)
    }

    /// Reads the text of a file, as [`load`](Self::load) does.
    ///
    /// # Errors
    /// The text has mistakes.
    pub fn from_yaml(text: &str) -> Result<Config, ConfigErrors> {
        Layers::new().yaml(text).partial().map(LoadedConfig::into_config)
    }

    /// A configuration with a single policy named `default`.
    ///
    /// # Errors
    /// The text is not a list of limits.
    pub fn from_limits(limits: &str) -> Result<Config, ConfigErrors> {
        Layers::new().limits(limits).partial().map(LoadedConfig::into_config)
    }
}

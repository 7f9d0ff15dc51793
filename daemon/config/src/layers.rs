//! What lies over what: the file, then the environment, then flags.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate_document::{
    Body, ConfigError, ConfigErrors, Diagnostics, Node, Origin, YamlLimits, parse,
};

use super::fields::Fields;
use super::schema::{Field, ROOT};
use super::{Config, environment, print, read, samples, secrets, shape};

/// Bounds on the configuration file, which has seven levels.
pub(super) const LIMITS: YamlLimits =
    YamlLimits { values: 250_000, depth: 32, remedy: "move many overrides into overrides_file" };

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Where a configuration comes from, to be [read](Layers::read) as one: the file, over it the
/// environment, over both the flags.
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
    /// What lies over the file, the last on top.
    over: Vec<Over>,
    diagnostics: Diagnostics,
    unreadable: Option<ConfigErrors>,
}

struct File {
    name: Option<Arc<str>>,
    directory: PathBuf,
    text: Arc<str>,
}

/// A value that lies over the file's.
pub(super) struct Over {
    pub(super) path: Vec<&'static str>,
    pub(super) field: &'static Field,
    pub(super) node: Node,
}

/// A configuration with where each value of it comes from.
#[non_exhaustive]
pub struct LoadedConfig {
    /// What the daemon runs with.
    pub config: Config,
    pub(super) tree: Node,
    file: Option<File>,
}

impl Layers {
    /// Nothing yet: the defaults.
    #[must_use]
    pub fn new() -> Self {
        Layers::default()
    }

    /// The file at a path. That it cannot be read is among the errors of [`read`](Self::read).
    /// Paths in it are relative to its directory.
    #[must_use]
    pub fn file(mut self, path: &Path) -> Self {
        let name: Arc<str> = path.display().to_string().into();
        match text_of(path) {
            Ok(text) => {
                let directory = path.parent().unwrap_or(Path::new("")).to_owned();
                self.file = Some(File { name: Some(name), directory, text: text.into() });
            }
            Err(error) => self.unreadable = Some(error.in_file(&name).into()),
        }
        self
    }

    /// The text of a file.
    #[must_use]
    pub fn yaml(mut self, text: &str) -> Self {
        self.file = Some(File { name: None, directory: PathBuf::new(), text: text.into() });
        self
    }

    /// The text of a file of this name, which stands in front of what is said of it.
    #[must_use]
    pub fn named_yaml(mut self, name: &str, text: &str) -> Self {
        let directory = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
        self.file = Some(File { name: Some(name.into()), directory, text: text.into() });
        self
    }

    /// The sample policies, in place of a file.
    #[must_use]
    pub fn samples(mut self) -> Self {
        self.base = Some(samples::tree());
        self
    }

    /// One policy named `default`, in place of a file.
    #[must_use]
    pub fn limits(mut self, limits: &str) -> Self {
        let origin = Origin::Flag("LIMITS");
        let texts = limits.split(';').map(str::trim);
        let texts = texts.map(|t| Node::text(t, origin.clone())).collect();
        let limits = Node { origin: origin.clone(), body: Body::List(texts), quoted: false };
        let mut tree = Node::nothing(origin);
        tree.set(&["policies", "default", "limits"], limits);
        self.base = Some(tree);
        self
    }

    /// The environment: `TOLLGATE_`, and the path of a field with `__` between its parts.
    #[must_use]
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.over.extend(environment::read(variables, &self.diagnostics));
        self
    }

    /// A flag, with the path of its field. It lies over all before it.
    #[must_use]
    pub fn flag(mut self, flag: &'static str, field: &str, value: &str) -> Self {
        match environment::find(field.split('.')) {
            Some((path, field)) => {
                let node = environment::node(field, value, Origin::Flag(flag));
                self.over.push(Over { path, field, node });
            }
            None => {
                self.diagnostics.add(ConfigError::new("there is no such field").with_field(field))
            }
        }
        self
    }

    /// Reads all of it as one.
    ///
    /// # Errors
    /// What a layer says cannot be used; all mistakes are named.
    pub fn read(self) -> Result<LoadedConfig, ConfigErrors> {
        self.combine(true)
    }

    /// Reads what may lack a layer yet: where no store is named, one may still be chosen.
    ///
    /// # Errors
    /// As those of [`read`](Self::read).
    pub fn partial(self) -> Result<LoadedConfig, ConfigErrors> {
        self.combine(false)
    }

    fn combine(self, is_whole: bool) -> Result<LoadedConfig, ConfigErrors> {
        let Layers { file, base, over, diagnostics, unreadable } = self;
        if let Some(error) = unreadable {
            return Err(error);
        }
        let mut tree = match (&file, base) {
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
        shape::check(&tree, &ROOT, &diagnostics);
        for Over { path, field, node } in over {
            shape::check_field(&node, field, &path.join("."), &diagnostics);
            tree.set(&path, node);
        }
        let directory = file.as_ref().map(|file| file.directory.clone()).unwrap_or_default();
        let config = {
            let fields = Fields::new(&tree, &ROOT, &directory, &diagnostics);
            read::config(&fields, is_whole)
        };
        match config {
            Ok(config) if diagnostics.is_empty() => Ok(LoadedConfig { config, tree, file }),
            _ => Err(errors(diagnostics, file.as_ref(), Some(&tree))),
        }
    }
}

fn errors(diagnostics: Diagnostics, file: Option<&File>, tree: Option<&Node>) -> ConfigErrors {
    let errors = diagnostics.into_errors(file.and_then(|file| file.name.as_ref()));
    match file {
        Some(file) => errors.with_source(Arc::clone(&file.text), secrets::find(&file.text, tree)),
        None => errors,
    }
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    let unreadable =
        |error: std::io::Error| ConfigError::new(format!("it cannot be read: {error}"));
    let mut file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // Not by its size, which a pipe has none of.
    let read = std::io::Read::take(&mut file, MAX_BYTES + 1);
    std::io::Read::read_to_end(&mut { read }, &mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|x| x > MAX_BYTES) {
        return Err(ConfigError::new(format!("more than {MAX_BYTES} bytes are not read")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ConfigError::new(format!("it is not UTF-8 from byte {at} on"))
    })
}

/// Without what they say, which may be secret.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().and_then(|file| file.name.as_deref());
        let over: Vec<_> = self.over.iter().map(|over| over.path.join(".")).collect();
        f.debug_struct("Layers").field("file", &file).field("over", &over).finish_non_exhaustive()
    }
}

/// Without the texts, which may be secret.
impl fmt::Debug for LoadedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedConfig").field("config", &self.config).finish_non_exhaustive()
    }
}

impl LoadedConfig {
    /// The whole of it as YAML that can be read again, but for secrets, which are masked.
    /// With `origins` a comment says where each value comes from that is not a default.
    #[must_use]
    pub fn print(&self, origins: bool) -> String {
        let name = self.file.as_ref().and_then(|file| file.name.as_deref());
        let directory = self.file.as_ref().map_or(Path::new(""), |file| &file.directory);
        print::yaml(&self.tree, name, directory, origins)
    }

    /// Diagnostics about what was read, with the text that they are about.
    pub(super) fn errors(&self, diagnostics: Diagnostics) -> ConfigErrors {
        errors(diagnostics, self.file.as_ref(), Some(&self.tree))
    }
}

impl Config {
    /// Reads a file. Where it names no store, what it says of one is looked at when one is opened.
    ///
    /// # Errors
    /// It cannot be read, or what it says cannot be used; each error names file, line, field and
    /// value, and what to write instead.
    pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
        Layers::new().file(path).partial().map(|partial| partial.config)
    }

    /// Reads the text of a file, as [`load`](Self::load) does.
    ///
    /// # Errors
    /// What it says cannot be used.
    pub fn from_yaml(text: &str) -> Result<Config, ConfigErrors> {
        Layers::new().yaml(text).partial().map(|partial| partial.config)
    }

    /// A configuration of one policy, named `default`.
    ///
    /// # Errors
    /// The text is not limits.
    pub fn from_limits(limits: &str) -> Result<Config, ConfigErrors> {
        Layers::new().limits(limits).partial().map(|partial| partial.config)
    }
}

//! YAML documents with positions, and diagnostics that point into them.
//!
//! [`parse`] turns the text of a configuration file into a tree of [`Node`]s. Each node keeps its
//! text as written and its position, so that a later step can report a mistake in a value with its
//! file, line and column. [`Diagnostics`] collects every mistake of a file, and [`ConfigErrors`]
//! prints them the way a compiler does.

mod error;
mod tree;
mod yaml;

pub use error::{ConfigError, ConfigErrors, Diagnostics, FileLocation};
pub use tree::{Body, Name, Node, Origin, Span};
pub use yaml::{YamlLimits, parse};

/// The text `did you mean "…"?` with the known name that is closest to `name`, if one is close.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    // No known name is this long, and the distance takes quadratic time.
    if name.len() > 64 {
        return None;
    }
    let near = known.map(|x| (strsim::osa_distance(name, x), x)).min()?;
    // One mistake in four letters: `incr` is not `info`.
    let most = near.1.len().div_ceil(4);
    (near.0 <= most).then(|| format!("did you mean \"{}\"?", near.1))
}

//! YAML documents with positions, and diagnostics that point into them.
//!
//! [`parse`] turns the text of a configuration file into a tree of [`Node`]s. Each node keeps its
//! text as written and its position, so that a later step can report a mistake in a value with its
//! file, line and column. [`Diagnostics`] collects every mistake of a file, and [`ConfigErrors`]
//! prints them the way a compiler does.

mod error;
mod report;
pub mod suggest;
mod tree;
mod yaml;

pub use error::{ConfigError, ConfigErrors, Diagnostics, FileLocation};
pub use suggest::did_you_mean;
pub use tree::{Body, Name, Node, Origin, Span};
pub use yaml::{YamlLimits, parse};

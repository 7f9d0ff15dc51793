//! The configuration format of envoyproxy/ratelimit.
//!
//! A domain is a tree of descriptors. A request's descriptor leads to a rule, to the key of its
//! counter and to the name of its metrics. `docs/envoy-ratelimit-config.md` lists the extensions to
//! the format.

mod build;
mod config;
mod domain;
mod domains;
mod error;
mod key;
mod limits;
mod rule;
#[cfg(test)]
mod tests;
mod unit;
mod yaml;

use tollgate::OnStoreError;

pub use domains::{Domains, Lookup, Matched, UnusedLimit};
pub use error::DescriptorConfigError;
pub use key::key;
pub use rule::{Limits, Rule, RuleRef};
pub use unit::Unit;

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name in error messages.
    pub name: String,
    /// The contents.
    pub text: String,
}

impl Source {
    /// A file with a name and contents.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source { name: name.into(), text: text.into() }
    }
}

/// Options for reading a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether files with the same domain are merged. Otherwise the second one is rejected.
    pub merge_domains: bool,
    /// Which descriptors of a request are charged.
    pub charging: Charging,
    /// The decision while the store is unavailable.
    pub on_store_error: OnStoreError,
}

/// Which descriptors of a request are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charging {
    /// All or none: a denied request is not charged.
    #[default]
    Atomic,
    /// Each descriptor separately, including those of a denied request, as in envoyproxy/ratelimit.
    Reference,
}

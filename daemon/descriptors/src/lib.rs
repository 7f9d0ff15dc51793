//! The configuration of envoyproxy/ratelimit: texts in, rules out.
//!
//! Domains hold trees of descriptors; a request's descriptor leads to a rule, to the key under
//! which it is counted and to the name under which it is measured. What the reference does not
//! have is told in `docs/envoy-ratelimit-config.md`.

mod build;
mod domain;
mod domains;
mod draft;
mod error;
mod joined;
mod key;
mod limits;
mod overrides;
mod rule;
#[cfg(test)]
mod tests;
mod unit;
mod wildcard;
mod xds;
mod yaml;

use tollgate::OnStoreError;

pub use domains::{Domains, Lookup, Matched};
pub use error::DescriptorConfigError;
pub use key::key;
pub use rule::{Limits, Rule, RuleRef};
pub use unit::Unit;

/// One file of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// How errors name it.
    pub name: String,
    /// What it holds.
    pub text: String,
}

impl Source {
    /// A file of this name that holds this.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source { name: name.into(), text: text.into() }
    }
}

/// How the configuration is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether files of one domain are merged; otherwise the second is refused.
    pub merge_domains: bool,
    /// What is charged of a request's descriptors.
    pub charging: Charging,
    /// What is answered while the store gives no answer.
    pub on_store_error: OnStoreError,
}

/// Which descriptors of a request are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charging {
    /// All of them or none; a denied request is charged nothing.
    #[default]
    Atomic,
    /// Each descriptor on its own, also those of a denied request, as envoyproxy/ratelimit does.
    Reference,
}

//! Changes that need a restart.

use std::fmt;

use super::Config;
use super::schema::{Kind, ROOT, Section, Value};
use super::tree::{Content, Entry};

/// The values of fields that need a restart, by path, in the order of the table.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct RestartFields(Vec<(String, Value)>);

/// Omits the values, which may be secret.
impl fmt::Debug for RestartFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl RestartFields {
    pub(super) fn new(tree: Option<&Entry>) -> Self {
        let mut fields = RestartFields::default();
        fields.collect(tree, &ROOT, "");
        fields
    }

    fn collect(&mut self, entry: Option<&Entry>, section: &Section, prefix: &str) {
        for field in section.fields {
            let path = format!("{prefix}{}", field.name);
            let entry = entry.and_then(|entry| entry.get(field.name));
            match &field.kind {
                Kind::Section(inner) => self.collect(entry, inner, &format!("{path}.")),
                Kind::Scalar(_) if field.needs_restart => {
                    let value = match entry.map(|entry| &entry.content) {
                        Some(Content::Scalar(_, value)) => value.clone(),
                        _ => field.default_value(),
                    };
                    self.0.push((path, value));
                }
                _ => {}
            }
        }
    }
}

impl Config {
    /// The fields that differ in another configuration and need a restart. The contents of files
    /// that they name may change.
    #[must_use]
    pub fn needs_restart(&self, new: &Config) -> Vec<String> {
        let pairs = self.restart_fields.0.iter().zip(&new.restart_fields.0);
        pairs.filter(|(old, new)| old != new).map(|((name, _), _)| name.clone()).collect()
    }
}

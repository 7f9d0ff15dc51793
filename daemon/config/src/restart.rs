//! Changes that need a restart.

use std::fmt;
use std::path::Path;

use super::Config;
use super::fields::resolve;
use super::schema::{Kind, ROOT, Section};
use tollgate_document::{Body, Node, Origin};

/// The values of fields that need a restart, by path, in the order of the table.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct RestartFields(Vec<(String, String)>);

/// Omits the values, which may be secret.
impl fmt::Debug for RestartFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl RestartFields {
    pub(super) fn new(tree: &Node, directory: &Path) -> Self {
        let mut fields = RestartFields::default();
        fields.collect(Some(tree), &ROOT, "", directory);
        fields
    }

    fn collect(&mut self, node: Option<&Node>, section: &Section, prefix: &str, directory: &Path) {
        for field in section.fields {
            let path = format!("{prefix}{}", field.name);
            let value = node.and_then(|node| node.get(field.name));
            match &field.kind {
                Kind::Section(inner) => self.collect(value, inner, &format!("{path}."), directory),
                Kind::Scalar(scalar) if field.needs_restart => {
                    let (text, origin) = match value.map(|x| (&x.body, &x.origin)) {
                        Some((Body::Text(text), origin)) => (&**text, origin),
                        _ => (field.default, &Origin::Default),
                    };
                    // Parsed values are compared, so that 5000ms equals 5s.
                    let value = match (text, scalar.read(text)) {
                        ("null", _) | (_, Err(_)) => text.to_owned(),
                        (_, Ok(value)) => format!("{:?}", resolve(value, origin, directory)),
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

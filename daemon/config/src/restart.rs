//! What a daemon that runs cannot take up.

use std::fmt;
use std::path::Path;

use super::Config;
use super::fields::resolve;
use super::schema::{Kind, ROOT, Section};
use tollgate_document::{Body, Node, Origin};

/// The values that need a restart, by the names of their fields, in the order of the table.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Fixed(Vec<(String, String)>);

/// Without the values, which may be secret.
impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Fixed {
    pub(super) fn of(tree: &Node, directory: &Path) -> Self {
        let mut fixed = Fixed::default();
        fixed.collect(Some(tree), &ROOT, "", directory);
        fixed
    }

    fn collect(&mut self, node: Option<&Node>, section: &Section, prefix: &str, directory: &Path) {
        for field in section.fields {
            let path = format!("{prefix}{}", field.name);
            let said = node.and_then(|node| node.get(field.name));
            match &field.kind {
                Kind::Section(inner) => self.collect(said, inner, &format!("{path}."), directory),
                Kind::One(scalar) if field.needs_restart => {
                    let (text, origin) = match said.map(|x| (&x.body, &x.origin)) {
                        Some((Body::Text(text), origin)) => (&**text, origin),
                        _ => (field.default, &Origin::Default),
                    };
                    // What is meant, so that 5000ms is no other value than 5s.
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
    /// The fields in which another configuration differs, and which a daemon that runs cannot take
    /// up. What is in the files that they name may change.
    #[must_use]
    pub fn needs_restart(&self, new: &Config) -> Vec<String> {
        let pairs = self.fixed.0.iter().zip(&new.fixed.0);
        pairs.filter(|(old, new)| old != new).map(|((name, _), _)| name.clone()).collect()
    }
}

//! Which names belong to a namespace.

use super::Keyspace;
use super::hash::slot;

impl Keyspace {
    /// Returns whether the keys are partitioned, as on a cluster.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partitions.is_some()
    }

    /// Returns a glob pattern that matches all names of the namespace, and few others. A namespace
    /// contains no special characters of patterns.
    pub(crate) fn pattern(&self) -> String {
        let namespace = &self.namespace;
        if self.is_partitioned() {
            format!("{namespace}:{{{namespace}*")
        } else {
            format!("{namespace}:*")
        }
    }

    /// Returns all hash tags and their slots; none without partitions.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (&str, u16)> {
        let tags = self.partitions.iter().flat_map(|partitions| &partitions.tags).map(|tag| &**tag);
        // The tag of the key that stores the number of partitions.
        let own = self.partitions.iter().map(|_| &*self.namespace);
        tags.chain(own).map(|tag| (tag, slot(tag.as_bytes())))
    }

    /// Returns a name in the slot of a tag under which nothing is stored.
    pub(crate) fn unused_name(&self, tag: &str) -> String {
        format!("{}:{{{tag}}}:#nothing", self.namespace)
    }

    /// Returns the hash tag in a name of this namespace, which is empty without partitions; `None` if
    /// the name is not of this namespace.
    pub(crate) fn tag_in<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        let rest = name.strip_prefix(self.namespace.as_bytes())?.strip_prefix(b":")?;
        if !self.is_partitioned() {
            return rest.contains(&b':').then_some(b"");
        }
        let rest = rest.strip_prefix(b"{")?;
        let (tag, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'}')?)?;
        let rest = rest.strip_prefix(b"}:")?;
        let is_own = match tag.strip_prefix(self.namespace.as_bytes())? {
            [b'.', number @ ..] => {
                !number.is_empty() && number.iter().all(u8::is_ascii_digit) && rest.contains(&b':')
            }
            own => own.is_empty() && rest == b"#groups",
        };
        is_own.then_some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{Part, Partitions};
    use tollgate_core::Micros;

    const ROW: Part =
        Part::Row { window: Micros::from_secs(60), precision: Micros::from_secs(1), rank: 0 };

    fn keyspaces(namespace: &str) -> [Keyspace; 2] {
        let partitions = Partitions::new(namespace, 8);
        [Keyspace::new(namespace, None), Keyspace::new(namespace, Some(partitions))]
    }

    #[test]
    fn every_name_belongs_to_its_own_namespace_only() {
        let namespaces = ["a", "ab", "a.b", "a-b", "a_b", "A", "a.0", "b", "0"];
        let texts: [&[u8]; 8] =
            [b"a", b"", b":", b"a:b", b"}:", b"{a.0}:x", b"*?[]\\", &[b'k'; 10_240]];
        for own in namespaces {
            for keyspace in keyspaces(own) {
                for text in texts {
                    let parts = [Part::State, Part::ReservationsById, ROW];
                    let mut all: Vec<_> =
                        parts.iter().map(|part| keyspace.name(part, "=10/s", text)).collect();
                    all.push(keyspace.request_id(0, text));
                    all.push(keyspace.shadow_record(0, text, 1));
                    for name in all {
                        for other in namespaces {
                            let place = usize::from(keyspace.is_partitioned());
                            let other_keyspace = &keyspaces(other)[place];
                            let tag = other_keyspace.tag_in(&name).map(is_tag_of(&keyspace));
                            let expected = (other == own).then_some(true);
                            assert_eq!(tag, expected, "{other}: {}", name.escape_ascii());
                        }
                    }
                }
            }
        }
    }

    /// Returns whether a tag is one of the keyspace.
    fn is_tag_of(keyspace: &Keyspace) -> impl Fn(&[u8]) -> bool {
        move |tag| match keyspace.is_partitioned() {
            true => keyspace.tags().any(|(other, _)| other.as_bytes() == tag),
            false => tag.is_empty(),
        }
    }

    #[test]
    fn foreign_names_are_not_owned() {
        let [single, partitioned] = keyspaces("a");
        for name in ["", "a", "a:", "a:b", ":a:b:c", "ab:c:d", "A:b:c", "xa:b:c", "a.b:c:d"] {
            assert_eq!(single.tag_in(name.as_bytes()), None, "{name}");
        }
        for name in [
            "a:b:c",
            "a:{a.0}",
            "a:{a.0}:b",
            "a:{a.}:b:c",
            "a:{a.x}:b:c",
            "a:{a}:b:c",
            "a:{ab.0}:b:c",
            "a:{b.0}:b:c",
            "a:{a.0:b:c",
            "a:{}:b:c",
            "a:{a}:#nothing",
            "ab:{ab.0}:b:c",
        ] {
            assert_eq!(partitioned.tag_in(name.as_bytes()), None, "{name}");
        }
        assert_eq!(partitioned.tag_in(b"a:{a}:#groups"), Some(&b"a"[..]));
        for (tag, _) in partitioned.tags() {
            assert_eq!(partitioned.tag_in(partitioned.unused_name(tag).as_bytes()), None);
        }
    }
}

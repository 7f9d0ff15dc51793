//! Which names are of a namespace, and which of others.

use super::{Names, slot};

impl Names {
    /// Whether keys are divided into groups, as on a cluster.
    pub(crate) fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// A glob that all names match, and few others; nothing that may be in a namespace has a meaning
    /// in it.
    pub(crate) fn pattern(&self) -> String {
        let namespace = &self.namespace;
        if self.has_groups() {
            format!("{namespace}:{{{namespace}*")
        } else {
            format!("{namespace}:*")
        }
    }

    /// All hash tags and their slots; none but on a cluster.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (&str, u16)> {
        let of_groups = self.groups.iter().flat_map(|group| &group.tags).map(|tag| &**tag);
        // Where the number of groups is written down.
        let own = self.groups.iter().map(|_| &*self.namespace);
        of_groups.chain(own).map(|group| (group, slot(group.as_bytes())))
    }

    /// A name in the slot of a tag that nothing has.
    pub(crate) fn of_nothing(&self, tag: &str) -> String {
        format!("{}:{{{tag}}}:#nothing", self.namespace)
    }

    /// The hash tag in a name of this namespace, empty but on a cluster; nothing if it is a name of
    /// others.
    pub(crate) fn tag_in<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        let rest = name.strip_prefix(self.namespace.as_bytes())?.strip_prefix(b":")?;
        if !self.has_groups() {
            return rest.contains(&b':').then_some(b"");
        }
        let rest = rest.strip_prefix(b"{")?;
        let (tag, rest) = rest.split_at_checked(rest.iter().position(|x| *x == b'}')?)?;
        let rest = rest.strip_prefix(b"}:")?;
        let is_ours = match tag.strip_prefix(self.namespace.as_bytes())? {
            [b'.', number @ ..] => {
                !number.is_empty() && number.iter().all(u8::is_ascii_digit) && rest.contains(&b':')
            }
            own => own.is_empty() && rest == b"#groups",
        };
        is_ours.then_some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Groups, Part};
    use tollgate_core::Micros;

    const ROW: Part =
        Part::Row { window: Micros::from_secs(60), precision: Micros::from_secs(1), rank: 0 };

    fn names(namespace: &str) -> [Names; 2] {
        let groups = Groups::new(namespace, 8);
        [Names::new(namespace, None), Names::new(namespace, Some(groups))]
    }

    #[test]
    fn every_name_is_of_its_own_namespace_and_of_no_other() {
        let namespaces = ["a", "ab", "a.b", "a-b", "a_b", "A", "a.0", "b", "0"];
        let texts: [&[u8]; 8] =
            [b"a", b"", b":", b"a:b", b"}:", b"{a.0}:x", b"*?[]\\", &[b'k'; 10_240]];
        for own in namespaces {
            for value in names(own) {
                for text in texts {
                    let parts = [Part::State, Part::ReservationsById, ROW];
                    let mut all: Vec<_> =
                        parts.iter().map(|part| value.of(part, "=10/s", text)).collect();
                    all.push(value.of_request_id(0, text));
                    all.push(value.of_part(0, text, 1));
                    for name in all {
                        for asked in namespaces {
                            let place = usize::from(value.has_groups());
                            let tag = names(asked)[place].tag_in(&name).map(is_tag_of(&value));
                            let expected = (asked == own).then_some(true);
                            assert_eq!(tag, expected, "{asked}: {}", name.escape_ascii());
                        }
                    }
                }
            }
        }
    }

    /// Whether a tag is one of those that there are.
    fn is_tag_of(names: &Names) -> impl Fn(&[u8]) -> bool {
        move |tag| match names.has_groups() {
            true => names.tags().any(|(x, _)| x.as_bytes() == tag),
            false => tag.is_empty(),
        }
    }

    #[test]
    fn what_is_no_name_of_ours_is_of_others() {
        let [alone, grouped] = names("a");
        for name in ["", "a", "a:", "a:b", ":a:b:c", "ab:c:d", "A:b:c", "xa:b:c", "a.b:c:d"] {
            assert_eq!(alone.tag_in(name.as_bytes()), None, "{name}");
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
            assert_eq!(grouped.tag_in(name.as_bytes()), None, "{name}");
        }
        assert_eq!(grouped.tag_in(b"a:{a}:#groups"), Some(&b"a"[..]));
        for (tag, _) in grouped.tags() {
            assert_eq!(grouped.tag_in(grouped.of_nothing(tag).as_bytes()), None);
        }
    }
}

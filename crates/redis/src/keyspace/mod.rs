//! The names of keys in the store.
//!
//! A name is `namespace:policy:key`, or on a cluster `namespace:{tag}:policy:key`. A request id has
//! `#i` in place of the policy; no policy name contains `#`. The records of its parts have `#p`, or `#s`
//! for shadow checks, and the request's fingerprint. The record of a settlement has a `t` after the `#` of
//! the name of its charge. The record of the processes is `#m:processes`. The user's text is last, so it cannot be mistaken for another part or select a
//! slot. A text of more than 256 bytes is replaced by its SHA-256 in hexadecimal, marked by `h` after the
//! `#` and its letters.

mod hash;

use sha2::{Digest, Sha256};

use crate::request_id::{RecordScope, RequestId};

pub(crate) use hash::{SLOTS, bucket, hash, slot};

/// The maximum length of a text that is part of a name as it is.
const MAX_TEXT_LEN: usize = 256;

/// The names of keys in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    namespace: Box<str>,
    partitions: Option<Partitions>,
}

/// The hash tags of a cluster: the keys of a partition share a slot, so a call can have several.
#[derive(Clone, Debug)]
pub(crate) struct Partitions {
    /// One tag per partition. Their slots are evenly distributed.
    tags: Box<[Box<str>]>,
}

impl Keyspace {
    pub(crate) fn new(namespace: &str, partitions: Option<Partitions>) -> Self {
        Keyspace { namespace: namespace.into(), partitions }
    }

    /// Returns the number of partitions, which is 1 without hash tags.
    pub(crate) fn partition_count(&self) -> u16 {
        let count = self.partitions.as_ref().map_or(1, Partitions::count);
        #[expect(clippy::expect_used, reason = "the number of partitions is a u16")]
        u16::try_from(count).expect("a number of partitions fits u16")
    }

    /// Returns the partition of a key, which is the same for all policies; 0 without partitions.
    pub(crate) fn partition_of(&self, key: &[u8]) -> u16 {
        self.partitions.as_ref().map_or(0, |partitions| partitions.partition_of(key))
    }

    /// Returns the slot of a partition; 0 without partitions, where one server has all slots.
    pub(crate) fn slot_of_partition(&self, partition: u16) -> u16 {
        self.partitions.as_ref().map_or(0, |partitions| slot(partitions.tag(partition).as_bytes()))
    }

    /// Returns the name of a key.
    pub(crate) fn name(&self, policy: &str, key: &[u8]) -> Vec<u8> {
        let mut name = self.prefix(self.partition_of(key), policy.len() + key.len());
        name.extend_from_slice(policy.as_bytes());
        put_text(&mut name, "", key);
        name
    }

    /// Returns the name of the record of a request id, in a partition. The record of a part has the
    /// fingerprint in its name, so that other requests with the same id have another name.
    pub(crate) fn record(&self, partition: u16, id: &RequestId) -> Vec<u8> {
        match id.charge {
            None => self.record_of(partition, id, "", id.fingerprint),
            Some(charge) => self.record_of(partition, id, "t", charge),
        }
    }

    /// Returns the name of the record of the charge that a request settles.
    pub(crate) fn charge_record(&self, partition: u16, id: &RequestId) -> Option<Vec<u8>> {
        id.charge.map(|charge| self.record_of(partition, id, "", charge))
    }

    fn record_of(&self, partition: u16, id: &RequestId, kind: &str, fingerprint: u128) -> Vec<u8> {
        let suffix = match id.scope {
            RecordScope::Request => format!("{kind}i"),
            RecordScope::Part => format!("{kind}p{fingerprint:032x}."),
            RecordScope::Shadows => format!("{kind}s{fingerprint:032x}."),
        };
        let mut name = self.prefix(partition, suffix.len() + id.id.len());
        put_text(&mut name, &suffix, &id.id);
        name
    }

    /// Returns the name of the record of the processes that share the namespace.
    pub(crate) fn members(&self, partition: u16) -> Vec<u8> {
        let mut name = self.prefix(partition, 16);
        put_text(&mut name, "m", b"processes");
        name
    }

    /// Returns the name of an extension's key. The `x` distinguishes it from all others.
    pub(crate) fn extension(
        &self,
        partition: u16,
        policy: &str,
        kind: &str,
        text: &[u8],
    ) -> Vec<u8> {
        let mut name = self.prefix(partition, policy.len() + kind.len() + text.len());
        name.extend_from_slice(policy.as_bytes());
        put_text(&mut name, &format!("x{kind}"), text);
        name
    }

    /// Returns the beginning of a name, with room for a policy and a text of this length together.
    fn prefix(&self, partition: u16, room: usize) -> Vec<u8> {
        let tag = self.partitions.as_ref().map_or(0, |partitions| partitions.tag(partition).len());
        let text = room.min(MAX_TEXT_LEN);
        let mut name = Vec::with_capacity(self.namespace.len() + tag + text + 16);
        name.extend_from_slice(self.namespace.as_bytes());
        if let Some(partitions) = &self.partitions {
            name.extend_from_slice(b":{");
            name.extend_from_slice(partitions.tag(partition).as_bytes());
            name.push(b'}');
        }
        name.push(b':');
        name
    }

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

    /// Returns a name in a partition under which nothing is stored.
    pub(crate) fn unused_name_in(&self, partition: u16) -> String {
        let tag = self.partitions.as_ref().map_or("", |partitions| partitions.tag(partition));
        self.unused_name(tag)
    }

    /// Returns a name in the slot of a tag under which nothing is stored.
    pub(crate) fn unused_name(&self, tag: &str) -> String {
        format!("{}:{{{tag}}}:#nothing", self.namespace)
    }

    /// Returns the hash tag in a name of this namespace, which is empty without partitions; `None`
    /// if the name is not of this namespace.
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

/// Appends the suffix and the user's text.
fn put_text(name: &mut Vec<u8>, suffix: &str, text: &[u8]) {
    let is_long = text.len() > MAX_TEXT_LEN;
    if is_long || !suffix.is_empty() {
        name.push(b'#');
        name.extend_from_slice(suffix.as_bytes());
    }
    if is_long {
        name.extend_from_slice(b"h:");
        for byte in Sha256::digest(text) {
            name.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
    } else {
        name.push(b':');
        name.extend_from_slice(text);
    }
}

impl Partitions {
    /// Creates `count` partitions, at least 1. The tags contain the namespace, so that namespaces do
    /// not share slots. Each tag is the first whose slot lies in the partition's share of all slots.
    pub(crate) fn new(namespace: &str, count: u16) -> Self {
        let count = count.max(1);
        let mut tags: Vec<Option<Box<str>>> = vec![None; usize::from(count)];
        let (mut missing, mut number) = (tags.len(), 0_u32);
        while missing > 0 {
            let tag = format!("{namespace}.{number}");
            number += 1;
            let share = usize::from(slot(tag.as_bytes())) * tags.len() / usize::from(SLOTS);
            if let place @ None = &mut tags[share] {
                *place = Some(tag.into());
                missing -= 1;
            }
        }
        Partitions { tags: tags.into_iter().flatten().collect() }
    }

    /// Returns the number of partitions.
    pub(crate) fn count(&self) -> usize {
        self.tags.len()
    }

    fn partition_of(&self, key: &[u8]) -> u16 {
        let hash = hash(key);
        #[expect(clippy::expect_used, reason = "the number of partitions is a u16")]
        u16::try_from(bucket(hash ^ (hash >> 33), self.count())).expect("a partition fits u16")
    }

    fn tag(&self, partition: u16) -> &str {
        &self.tags[usize::from(partition)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_id::Role;
    use std::collections::HashSet;

    #[test]
    fn partitions_divide_the_slots_evenly() {
        for count in [1, 2, 64, 1_000] {
            let keyspace = Keyspace::new("n", Some(Partitions::new("n", count)));
            let slots: Vec<u16> = (0..count).map(|n| keyspace.slot_of_partition(n)).collect();
            let part = |slot: u16| u32::from(slot) * u32::from(count) / u32::from(SLOTS);
            let parts: Vec<u32> = slots.iter().map(|slot| part(*slot)).collect();
            assert_eq!(parts, (0..u32::from(count)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn similar_keys_are_distributed_over_all_partitions() {
        let partitions = Partitions::new("n", 64);
        let keys = |form: fn(u32) -> String| {
            (0..1_024)
                .map(|n| partitions.partition_of(form(n).as_bytes()))
                .collect::<HashSet<_>>()
                .len()
        };
        assert_eq!(keys(|n| format!("user:{n}")), 64);
        assert_eq!(keys(|n| format!("10.0.{}.{}", n / 256, n % 256)), 64);
    }

    fn request_ids(id: &[u8]) -> Vec<RequestId> {
        let scopes = [
            (RecordScope::Request, 0, None),
            (RecordScope::Part, 1, None),
            (RecordScope::Part, 2, None),
            (RecordScope::Shadows, 1, None),
            (RecordScope::Request, 1, Some(0)),
            (RecordScope::Part, 1, Some(1)),
            (RecordScope::Part, 1, Some(2)),
            (RecordScope::Shadows, 1, Some(1)),
        ];
        let request_id = |(scope, fingerprint, charge)| RequestId {
            id: id.into(),
            fingerprint,
            scope,
            role: Role::Whole,
            attempt: 0,
            target: 0,
            charge,
        };
        scopes.map(request_id).into()
    }

    #[test]
    fn different_keys_have_different_names() {
        let texts: Vec<Vec<u8>> = [
            &b"a"[..],
            b"{x}",
            b"a{b}c",
            b"}{",
            b"a:b",
            b":",
            b"#r:a",
            b"#h:a",
            b"\0\xff",
            b"%7C",
            b"",
        ]
        .into_iter()
        .map(<[u8]>::to_vec)
        .chain([vec![b'k'; 257], vec![b'k'; 258], vec![b'k'; 10_240]])
        .collect();
        for partitions in [None, Some(Partitions::new("n", 8))] {
            let keyspace = Keyspace::new("n", partitions);
            let mut all = HashSet::new();
            for text in &texts {
                for policy in ["api", "a", "=10/s"] {
                    let name = keyspace.name(policy, text);
                    assert!(name.len() < 400, "the name is too long");
                    assert!(all.insert(name), "duplicate name for {}", text.escape_ascii());
                }
                for id in request_ids(text) {
                    assert!(all.insert(keyspace.record(0, &id)));
                }
                for (policy, kind) in [("api", "k"), ("api", "i"), ("", "w")] {
                    let partition = keyspace.partition_of(text);
                    assert!(all.insert(keyspace.extension(partition, policy, kind, text)));
                }
            }
        }
    }

    #[test]
    fn braces_in_keys_do_not_select_a_slot() {
        let keyspace = Keyspace::new("n", Some(Partitions::new("n", 8)));
        for key in [&b"{x}"[..], b"}{", b"a{b}c"] {
            let name = keyspace.name("api", key);
            let (from, to) = (
                name.iter().position(|byte| *byte == b'{'),
                name.iter().position(|byte| *byte == b'}'),
            );
            let tag = &name[from.unwrap() + 1..to.unwrap()];
            assert_eq!(slot(tag), keyspace.slot_of_partition(keyspace.partition_of(key)));
        }
    }

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
                    let mut all = vec![keyspace.name("=10/s", text)];
                    all.extend(request_ids(text).iter().map(|id| keyspace.record(0, id)));
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

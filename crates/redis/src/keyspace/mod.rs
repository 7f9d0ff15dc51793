//! The names of keys in the store.
//!
//! A name is `namespace:policy:key`, or on a cluster `namespace:{tag}:policy:key`. Data that belongs
//! to a key has `#` and a letter after the policy's name; no policy name contains `#`. A request id
//! has `#i` in place of the policy, or `#s` and the request's fingerprint if only its shadow checks
//! are recorded. The user's text is last, so it cannot be mistaken for another part or select a slot.
//! A text of more than 256 bytes is replaced by its SHA-256 in hexadecimal, marked `h`.

mod hash;
mod ownership;

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tollgate_core::Micros;

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

/// What is stored under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    State,
    ReservationsById,
    ReservationsByTime,
    /// The long row of a log, for the limit with this window, precision and rank among equal limits.
    Row {
        window: Micros,
        precision: Micros,
        rank: u8,
    },
}

impl Keyspace {
    pub(crate) fn new(namespace: &str, partitions: Option<Partitions>) -> Self {
        Keyspace { namespace: namespace.into(), partitions }
    }

    /// Returns the partition of a key, which is the same for all policies; 0 without partitions.
    pub(crate) fn partition_of(&self, key: &[u8]) -> u16 {
        self.partitions.as_ref().map_or(0, |partitions| partitions.partition_of(key))
    }

    /// Returns the slot of a partition; 0 without partitions, where one server has all slots.
    pub(crate) fn slot_of_partition(&self, partition: u16) -> u16 {
        self.partitions.as_ref().map_or(0, |partitions| slot(partitions.tag(partition).as_bytes()))
    }

    /// Returns the name of a part of a key's data.
    pub(crate) fn name(&self, part: &Part, policy: &str, key: &[u8]) -> Vec<u8> {
        let suffix: Cow<'_, str> = match part {
            Part::State => "".into(),
            Part::ReservationsById => "r".into(),
            Part::ReservationsByTime => "t".into(),
            Part::Row { window, precision, rank } => {
                format!("l{}.{}.{rank}.", window.get() / 1_000, precision.get() / 1_000).into()
            }
        };
        let mut name = self.prefix(self.partition_of(key));
        name.extend_from_slice(policy.as_bytes());
        put_text(&mut name, &suffix, key);
        name
    }

    /// Returns the name of the record of a request id, in a partition.
    pub(crate) fn request_id(&self, partition: u16, id: &[u8]) -> Vec<u8> {
        let mut name = self.prefix(partition);
        put_text(&mut name, "i", id);
        name
    }

    /// Returns the name of the separate record of a request's shadow checks, in a partition. It
    /// contains the fingerprint, so that other requests with the same id have another name.
    pub(crate) fn shadow_record(&self, partition: u16, id: &[u8], fingerprint: u128) -> Vec<u8> {
        let mut name = self.prefix(partition);
        put_text(&mut name, &format!("s{fingerprint:032x}."), id);
        name
    }

    fn prefix(&self, partition: u16) -> Vec<u8> {
        let mut name = self.namespace.as_bytes().to_vec();
        if let Some(partitions) = &self.partitions {
            name.extend_from_slice(b":{");
            name.extend_from_slice(partitions.tag(partition).as_bytes());
            name.push(b'}');
        }
        name.push(b':');
        name
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
                    for part in [Part::State, Part::ReservationsById, Part::ReservationsByTime] {
                        let name = keyspace.name(&part, policy, text);
                        assert!(name.len() < 400, "the name is too long");
                        assert!(all.insert(name), "duplicate name for {}", text.escape_ascii());
                    }
                }
                assert!(all.insert(keyspace.request_id(0, text)));
                assert!(all.insert(keyspace.shadow_record(0, text, 1)));
                assert!(all.insert(keyspace.shadow_record(0, text, 2)));
            }
        }
    }

    #[test]
    fn braces_in_keys_do_not_select_a_slot() {
        let keyspace = Keyspace::new("n", Some(Partitions::new("n", 8)));
        for key in [&b"{x}"[..], b"}{", b"a{b}c"] {
            let name = keyspace.name(&Part::State, "api", key);
            let (from, to) = (
                name.iter().position(|name| *name == b'{'),
                name.iter().position(|name| *name == b'}'),
            );
            let tag = &name[from.unwrap() + 1..to.unwrap()];
            assert_eq!(slot(tag), keyspace.slot_of_partition(keyspace.partition_of(key)));
        }
    }
}

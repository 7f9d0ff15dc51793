//! What keys are called in the store.
//!
//! `namespace:policy:key`, and on a cluster `namespace:{tag}:policy:key`. What belongs to a key has
//! the policy's name followed by `#` and a letter, which no policy's name has; a request id has
//! `#i` in the policy's place, or `#s` and what was asked, where only shadows are remembered. The
//! user's text stands last, so it can neither be taken for another part nor choose a slot; one of
//! more than 256 bytes is its SHA-256 in hexadecimal, marked `h`.

mod own;

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tollgate_core::Micros;

/// The longest text that stands in a name as it is.
const MAX_NAMESPACE_LEN: usize = 256;

/// How keys are called under a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    namespace: Box<str>,
    groups: Option<Groups>,
}

/// The hash tags of a cluster: all keys of a group are in one slot, so one call can carry them.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// One for each group, such that they divide the slots evenly.
    tags: Box<[Box<str>]>,
}

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    State,
    ReservationsById,
    ReservationsByTime,
    /// The long row of a log: of the limit of this window, precision and rank among equals.
    Row {
        window: Micros,
        precision: Micros,
        rank: u8,
    },
}

impl Names {
    pub(crate) fn new(namespace: &str, groups: Option<Groups>) -> Self {
        Names { namespace: namespace.into(), groups }
    }

    /// The group of a key: all policies of one key share it.
    pub(crate) fn group_of(&self, key: &[u8]) -> u16 {
        self.groups.as_ref().map_or(0, |group| group.of(key))
    }

    /// The slot that the hash tag of a group is in.
    pub(crate) fn slot_of_group(&self, group: u16) -> u16 {
        self.groups.as_ref().map_or(0, |g| slot(g.tag(group).as_bytes()))
    }

    /// The name of what is kept of a key.
    pub(crate) fn of(&self, part: &Part, policy: &str, key: &[u8]) -> Vec<u8> {
        let suffix: Cow<'_, str> = match part {
            Part::State => "".into(),
            Part::ReservationsById => "r".into(),
            Part::ReservationsByTime => "t".into(),
            Part::Row { window, precision, rank } => {
                format!("l{}.{}.{rank}.", window.get() / 1_000, precision.get() / 1_000).into()
            }
        };
        let mut name = self.prefix(self.group_of(key));
        name.extend_from_slice(policy.as_bytes());
        put_text(&mut name, &suffix, key);
        name
    }

    /// The name of what is remembered of a request id, in a group.
    pub(crate) fn of_request_id(&self, group: u16, id: &[u8]) -> Vec<u8> {
        let mut name = self.prefix(group);
        put_text(&mut name, "i", id);
        name
    }

    /// The name of what is remembered of the shadows of a request in a group that does not say
    /// whether its id was used; so those who ask something else do not meet there.
    pub(crate) fn of_part(&self, group: u16, id: &[u8], fingerprint: u128) -> Vec<u8> {
        let mut name = self.prefix(group);
        put_text(&mut name, &format!("s{fingerprint:032x}."), id);
        name
    }

    fn prefix(&self, group: u16) -> Vec<u8> {
        let mut name = self.namespace.as_bytes().to_vec();
        if let Some(groups) = &self.groups {
            name.extend_from_slice(b":{");
            name.extend_from_slice(groups.tag(group).as_bytes());
            name.push(b'}');
        }
        name.push(b':');
        name
    }
}

/// Appends what the name is of and the user's text.
fn put_text(name: &mut Vec<u8>, suffix: &str, text: &[u8]) {
    let is_long = text.len() > MAX_NAMESPACE_LEN;
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

impl Groups {
    /// As many groups, at least 1, whose tags hold the namespace so that namespaces do not share
    /// slots; each tag is the first whose slot is in its group's part of all slots.
    pub(crate) fn new(namespace: &str, count: u16) -> Self {
        let count = u32::from(count.max(1));
        let mut tags: Vec<Option<Box<str>>> = vec![None; usize::try_from(count).unwrap_or(1)];
        let (mut missing, mut number) = (tags.len(), 0_u32);
        while missing > 0 {
            let tag = format!("{namespace}.{number}");
            number += 1;
            let part = u32::from(slot(tag.as_bytes())) * count / u32::from(SLOTS);
            let place = usize::try_from(part).ok().and_then(|x| tags.get_mut(x));
            if let Some(place @ None) = place {
                *place = Some(tag.into());
                missing -= 1;
            }
        }
        Groups { tags: tags.into_iter().flatten().collect() }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.tags.len()
    }

    fn of(&self, key: &[u8]) -> u16 {
        let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        // The last bytes of a key reach only some bits of this hash: mixed as MurmurHash3 ends.
        let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let count = u64::try_from(self.count()).unwrap_or(1);
        u16::try_from((mixed ^ (mixed >> 33)) % count).unwrap_or(0)
    }

    fn tag(&self, group: u16) -> &str {
        self.tags.get(usize::from(group)).map_or("", |tag| tag)
    }
}

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of bytes without a hash tag: CRC-16 (XMODEM) of them, by the cluster specification.
pub(crate) fn slot(bytes: &[u8]) -> u16 {
    let crc = bytes.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_slot_is_what_the_specification_says() {
        assert_eq!(slot(b"123456789"), 0x31c3 % SLOTS);
        assert_eq!(slot(b"foo"), 12_182);
    }

    #[test]
    fn groups_divide_the_slots_evenly() {
        for count in [1, 2, 64, 1_000] {
            let names = Names::new("n", Some(Groups::new("n", count)));
            let slots: Vec<u16> = (0..count).map(|n| names.slot_of_group(n)).collect();
            let part = |slot: u16| u32::from(slot) * u32::from(count) / u32::from(SLOTS);
            let parts: Vec<u32> = slots.iter().map(|slot| part(*slot)).collect();
            assert_eq!(parts, (0..u32::from(count)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn keys_that_differ_little_are_in_all_groups() {
        let groups = Groups::new("n", 64);
        let keys = |form: fn(u32) -> String| {
            (0..1_024).map(|n| groups.of(form(n).as_bytes())).collect::<HashSet<_>>().len()
        };
        assert_eq!(keys(|it| format!("user:{it}")), 64);
        assert_eq!(keys(|it| format!("10.0.{}.{}", it / 256, it % 256)), 64);
    }

    #[test]
    fn different_keys_have_different_names_whatever_is_in_them() {
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
        for groups in [None, Some(Groups::new("n", 8))] {
            let names = Names::new("n", groups);
            let mut all = HashSet::new();
            for text in &texts {
                for policy in ["api", "a", "=10/s"] {
                    for part in [Part::State, Part::ReservationsById, Part::ReservationsByTime] {
                        let name = names.of(&part, policy, text);
                        assert!(name.len() < 400, "a name that is too long");
                        assert!(all.insert(name), "two of {}", text.escape_ascii());
                    }
                }
                assert!(all.insert(names.of_request_id(0, text)));
                assert!(all.insert(names.of_part(0, text, 1)));
                assert!(all.insert(names.of_part(0, text, 2)));
            }
        }
    }

    #[test]
    fn users_do_not_choose_a_slot() {
        let names = Names::new("n", Some(Groups::new("n", 8)));
        for key in [&b"{x}"[..], b"}{", b"a{b}c"] {
            let name = names.of(&Part::State, "api", key);
            let (from, to) = (
                name.iter().position(|name| *name == b'{'),
                name.iter().position(|name| *name == b'}'),
            );
            let tag = &name[from.unwrap() + 1..to.unwrap()];
            assert_eq!(slot(tag), names.slot_of_group(names.group_of(key)));
        }
    }
}

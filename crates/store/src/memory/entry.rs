//! An entry of the table: 64 bytes, with keys of up to 26 bytes inline.

use tollgate_algorithms::{KeyState, Policy};

use super::stored_key::{HASH_LEN, StoredKey};

/// The hash of a (policy, key) within its shard.
pub(crate) type Tag = u32;

/// The index of an entry's slot in its shard. It is stable until the shard is compacted.
pub(crate) type SlotIndex = u32;

/// The maximum length of a key that is stored without an allocation.
const INLINE: usize = HASH_LEN;

/// The bytes of a key, and its tag. The tag is in each variant, where it fits into padding.
#[derive(Clone, Debug)]
enum Bytes {
    Inline(u8, [u8; INLINE], Tag),
    /// At most 256 bytes.
    Heap(Box<[u8]>, Tag),
    /// The hash of a long key.
    Hash([u8; HASH_LEN], Tag),
}

impl Bytes {
    fn new(key: &StoredKey<'_>, tag: Tag) -> Self {
        let key = match key {
            StoredKey::Text(key) => *key,
            StoredKey::Hash(hash) => return Bytes::Hash(*hash, tag),
        };
        match u8::try_from(key.len()) {
            Ok(len) if key.len() <= INLINE => {
                let mut bytes = [0; INLINE];
                bytes[..key.len()].copy_from_slice(key);
                Bytes::Inline(len, bytes, tag)
            }
            _ => Bytes::Heap(key.into(), tag),
        }
    }

    #[inline]
    fn get(&self) -> StoredKey<'_> {
        match self {
            Bytes::Inline(len, bytes, _) => {
                StoredKey::Text(&bytes[..usize::from(*len).min(INLINE)])
            }
            Bytes::Heap(bytes, _) => StoredKey::Text(bytes),
            Bytes::Hash(hash, _) => StoredKey::Hash(*hash),
        }
    }
}

/// A key and its state, which refers to the policy: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Entry {
    key: Bytes,
    pub(crate) state: KeyState,
}

const _: () = assert!(size_of::<Option<Entry>>() == 64);

impl Entry {
    pub(crate) fn new(tag: Tag, key: &StoredKey<'_>, state: KeyState) -> Self {
        Entry { key: Bytes::new(key, tag), state }
    }

    pub(crate) fn tag(&self) -> Tag {
        match self.key {
            Bytes::Inline(_, _, tag) | Bytes::Heap(_, tag) | Bytes::Hash(_, tag) => tag,
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> StoredKey<'_> {
        self.key.get()
    }

    #[inline]
    pub(crate) fn matches(&self, policy: &Policy, key: &StoredKey<'_>) -> bool {
        self.key() == *key && self.state.policy().is_some_and(|p| p.shares_name(policy))
    }

    /// Whether it belongs to this key and this very policy, and its state is that of one limit and nothing
    /// else, stored inline.
    #[inline]
    pub(crate) fn is_inline_single_limit(&self, policy: &Policy, key: &StoredKey<'_>) -> bool {
        self.key() == *key && self.state.is_inline() && self.state.is_single_limit_of(policy)
    }

    /// Returns the bytes allocated outside the table.
    pub(crate) fn heap_bytes(&self) -> usize {
        let key = match &self.key {
            Bytes::Inline(..) | Bytes::Hash(..) => 0,
            Bytes::Heap(bytes, _) => bytes.len(),
        };
        key + self.state.heap_bytes()
    }
}

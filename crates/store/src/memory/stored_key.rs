//! Keys as the store keeps them: a key of more than 256 bytes is replaced by its hash.

use sha2::{Digest as _, Sha256};
use tollgate_algorithms::codec::Malformed;

use crate::key::Key;

/// The maximum length of a key that is stored as it is, the same as on Redis.
pub(crate) const MAX_TEXT_LEN: usize = 256;

/// The length of a hash: a SHA-256, truncated to what an entry holds without an allocation. A
/// collision takes about 2^104 attempts.
pub(crate) const HASH_LEN: usize = 26;

const TEXT: u8 = 0;
const HASH: u8 = 1;

/// A key, or the hash of a long key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredKey<'a> {
    Text(&'a [u8]),
    Hash([u8; HASH_LEN]),
}

impl<'a> StoredKey<'a> {
    #[inline]
    pub(crate) fn new(key: &'a [u8]) -> Self {
        if key.len() <= MAX_TEXT_LEN { StoredKey::Text(key) } else { StoredKey::hash(key) }
    }

    #[cold]
    fn hash(key: &[u8]) -> Self {
        let mut hash = [0; HASH_LEN];
        hash.copy_from_slice(&Sha256::digest(key)[..HASH_LEN]);
        StoredKey::Hash(hash)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            StoredKey::Text(text) => text,
            StoredKey::Hash(hash) => hash,
        }
    }

    /// Returns the kind of the key, which distinguishes a hash from a text of the same bytes.
    pub(crate) const fn kind(&self) -> u8 {
        match self {
            StoredKey::Text(_) => TEXT,
            StoredKey::Hash(_) => HASH,
        }
    }

    /// Decodes the kind and the bytes of a key.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let key = match bytes.split_first() {
            Some((&TEXT, text)) if (1..=MAX_TEXT_LEN).contains(&text.len()) => {
                Some(StoredKey::Text(text))
            }
            Some((&HASH, hash)) => hash.try_into().ok().map(StoredKey::Hash),
            _ => None,
        };
        key.ok_or(Malformed("invalid key"))
    }

    /// Decodes a key of version 2 of the snapshot format, which has all keys as they are.
    pub(crate) fn decode_text(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let key = Key::new(bytes).map_err(|_| Malformed("invalid key"))?;
        Ok(StoredKey::new(key.as_bytes()))
    }
}

impl PartialEq for StoredKey<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (StoredKey::Text(text), StoredKey::Text(other)) => is_equal(text, other),
            (StoredKey::Hash(hash), StoredKey::Hash(other)) => hash == other,
            _ => false,
        }
    }
}

/// Compares keys of 8 to 32 bytes, as most are, in two parts that overlap or meet, without a call of the
/// function that compares any number of bytes.
#[inline]
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    fn is_equal_at_ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
        one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
    }
    one.len() == other.len()
        && match one.len() {
            8..=16 => is_equal_at_ends::<8>(one, other),
            17..=32 => is_equal_at_ends::<16>(one, other),
            _ => one == other,
        }
}

/// The kind and the bytes of a key, in a buffer on the stack.
#[derive(Debug)]
pub(crate) struct EncodedKey {
    bytes: [u8; 1 + MAX_TEXT_LEN],
    len: usize,
}

impl EncodedKey {
    pub(crate) fn new(key: &StoredKey<'_>) -> Self {
        let mut bytes = [0; 1 + MAX_TEXT_LEN];
        let len = 1 + key.bytes().len();
        bytes[0] = key.kind();
        bytes[1..len].copy_from_slice(key.bytes());
        EncodedKey { bytes, len }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

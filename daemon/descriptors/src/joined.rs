//! The composite key of an entry.

/// Longer texts are stored on the heap.
const MAX_INLINE: usize = 128;

/// A buffer for `key_value`, reused for every entry of a request.
#[derive(Debug)]
pub(super) struct Joined {
    inline: [u8; MAX_INLINE],
    heap: Vec<u8>,
}

impl Default for Joined {
    fn default() -> Self {
        Joined { inline: [0; MAX_INLINE], heap: Vec::new() }
    }
}

impl Joined {
    /// `key_value`.
    pub(super) fn join(&mut self, key: &str, value: &str) -> &[u8] {
        let Joined { inline, heap } = self;
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let length = key.len() + 1 + value.len();
        if length > MAX_INLINE {
            heap.clear();
            heap.extend_from_slice(key);
            heap.push(b'_');
            heap.extend_from_slice(value);
            return heap;
        }
        let joined = &mut inline[..length];
        let (first, rest) = joined.split_at_mut(key.len());
        first.copy_from_slice(key);
        rest[0] = b'_';
        rest[1..].copy_from_slice(value);
        joined
    }
}

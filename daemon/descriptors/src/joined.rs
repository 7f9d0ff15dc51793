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
        let parts = inline.get_mut(..key.len() + 1 + value.len()).and_then(|whole| {
            let (first, rest) = whole.split_at_mut_checked(key.len())?;
            let (between, last) = rest.split_first_mut()?;
            first.copy_from_slice(key);
            *between = b'_';
            last.copy_from_slice(value);
            Some(())
        });
        if parts.is_some() {
            return inline.get(..key.len() + 1 + value.len()).unwrap_or_default();
        }
        heap.clear();
        heap.extend_from_slice(key);
        heap.push(b'_');
        heap.extend_from_slice(value);
        heap
    }
}

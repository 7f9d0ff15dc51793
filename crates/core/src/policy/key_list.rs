//! Allow and deny lists: exact keys, and prefixes written `prefix*`.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The list of a policy that has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listed {
    /// The key is always admitted.
    Allow,
    /// The key is always denied.
    Deny,
}

/// A list of keys that a policy always admits or always denies. Cloning is cheap.
///
/// # Example
/// ```
/// use tollgate_algorithms::KeyList;
/// let list: KeyList = ["health-check", "internal:*"].into_iter().collect();
/// assert!(list.contains(b"health-check") && list.contains(b"internal:7"));
/// assert!(!list.contains(b"health-checks"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyList {
    /// Sorted for binary search.
    pub(super) exact: Arc<[Box<[u8]>]>,
    /// Without the star, sorted so that equal lists compare equal.
    pub(super) prefixes: Arc<[Box<[u8]>]>,
}

impl KeyList {
    /// Whether the key or a prefix of it is on the list.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.exact.binary_search_by(|exact| (**exact).cmp(key)).is_ok()
            || self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }

    /// Whether the list has no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }
}

impl<B: AsRef<[u8]>> FromIterator<B> for KeyList {
    fn from_iter<I: IntoIterator<Item = B>>(keys: I) -> Self {
        let (mut exact, mut prefixes) = (Vec::new(), Vec::new());
        for key in keys {
            match key.as_ref() {
                [prefix @ .., b'*'] => prefixes.push(Box::from(prefix)),
                key => exact.push(Box::from(key)),
            }
        }
        exact.sort_unstable();
        prefixes.sort_unstable();
        KeyList { exact: exact.into(), prefixes: prefixes.into() }
    }
}

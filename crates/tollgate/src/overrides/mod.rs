//! Overrides: other limits for some keys of a policy.

mod allowance;
mod builder;
mod error;
mod network;
mod networks;
mod pattern;
mod prefixes;
mod text_map;
mod texts;

use std::fmt;
use std::sync::Arc;

pub(crate) use allowance::Allowance;
pub use builder::OverridesBuilder;
pub use error::{OverrideError, PatternError};
pub use pattern::KeyPattern;

use network::Network;
use networks::Networks;
use prefixes::Prefixes;
use text_map::TextMap;

/// The most overrides in one [`Overrides`].
pub const MAX_OVERRIDES: usize = 1_000_000;

/// Other limits for some keys of a policy. Never changes; clones share it.
///
/// A row is a [`KeyPattern`] and limits, or the word `unlimited`, which admits the key always and
/// charges it nothing, as an allow list does. What is most specific decides: the key itself, then
/// the longest beginning, then the smallest network.
///
/// A lookup hashes the key once and, where there are beginnings or networks, halves their list;
/// it allocates nothing. A row of a whole key takes some 19 bytes besides the key.
///
/// # Example
/// ```
/// use tollgate::{Overrides, Policies};
///
/// let mut overrides = Overrides::builder();
/// overrides.add("vip", "100/s")?;
/// overrides.add("bot-*", "1/s; 100/d")?;
/// overrides.add("10.0.0.0/8", "unlimited")?;
///
/// let mut policies = Policies::new();
/// policies.define("api", "10/s burst 20")?;
/// policies.set_overrides("api", &overrides.build())?;
/// let limits = |key: &str| Ok::<_, tollgate::ResolveError>(policies.resolve("api", key.as_bytes(), None)?.to_string());
/// assert_eq!(limits("vip")?, "100/s");
/// assert_eq!(limits("bot-7")?, "1/s; 100/d");
/// assert_eq!(limits("user:42")?, "10/s burst 20");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Overrides(Arc<Rows>);

#[derive(Default)]
struct Rows {
    exact: TextMap,
    prefixes: Prefixes,
    networks: Networks,
    /// What the rows give, each once.
    allowances: Box<[Allowance]>,
}

/// How narrow the pattern is that a key was found by: of two rows the greater decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Specificity {
    /// A network, by the length of its prefix.
    Network(u8),
    /// A beginning, by its length.
    Prefix(usize),
    /// The key itself.
    Exact,
}

/// The row that decides for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) specificity: Specificity,
    /// Which of [`Overrides::allowances`] it gives.
    pub(crate) allowance: u32,
}

impl Overrides {
    /// Rows to be added.
    #[must_use]
    pub fn builder() -> OverridesBuilder {
        OverridesBuilder::default()
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.exact.len() + self.0.prefixes.len() + self.0.networks.len()
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row that decides for a key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Found> {
        let Rows { exact, prefixes, networks, .. } = &*self.0;
        if let Some(allowance) = exact.find(key) {
            return Some(Found { specificity: Specificity::Exact, allowance });
        }
        if let Some((length, allowance)) = prefixes.find(key) {
            return Some(Found { specificity: Specificity::Prefix(length), allowance });
        }
        if networks.len() == 0 {
            return None;
        }
        let (length, allowance) = networks.find(Network::of_key(key)?)?;
        Some(Found { specificity: Specificity::Network(length), allowance })
    }

    /// What the rows give, each once.
    pub(crate) fn allowances(&self) -> &[Allowance] {
        &self.0.allowances
    }
}

/// As many rows as there may be are not for a log.
impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A place in one of the lists; they are kept as 32 bits, which any address has.
fn place(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

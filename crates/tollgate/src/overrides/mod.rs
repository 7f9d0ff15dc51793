//! Overrides: other limits for some keys of a policy.

mod pattern;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use ipnet::IpNet;
use tollgate_algorithms::{KeyList, NotationError, Policy};

pub use pattern::{KeyPattern, KeyPatternKind, PatternError};
use pattern::{Shape, network_of_key};

/// The maximum number of rows in one [`Overrides`].
pub const MAX_OVERRIDES: usize = 1_000_000;

/// Other limits for some keys of a policy. Immutable; clones share the rows.
///
/// A row has a [`KeyPattern`] and limits, or the word `unlimited`, which admits the key always and
/// charges nothing, as an allow list does. The most specific row decides: an exact key before a key
/// prefix before a network, and the longest prefix of each.
///
/// A lookup hashes the key once, and once more for each distinct prefix length among the rows. It
/// allocates nothing. A row for an exact key takes about 100 bytes.
///
/// # Examples
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
    exact: HashMap<Box<[u8]>, Row, RandomState>,
    prefixes: HashMap<Box<[u8]>, Row, RandomState>,
    /// The distinct lengths of the prefixes, in bytes.
    prefix_lengths: BTreeSet<usize>,
    networks: HashMap<IpNet, Row, RandomState>,
    /// The distinct prefix lengths of the networks, in bits.
    network_lengths: BTreeSet<u8>,
    /// The distinct limits that the rows give.
    overrides: Vec<Override>,
}

impl Rows {
    fn len(&self) -> usize {
        self.exact.len() + self.prefixes.len() + self.networks.len()
    }
}

#[derive(Clone, Copy)]
struct Row {
    /// Index into [`Rows::overrides`].
    index: u32,
    /// Position of the row in the order of addition, from 0.
    number: u32,
}

/// The limits that an override or a tier gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Override {
    /// The limits of this policy.
    Limits(Policy),
    /// Always admits, and charges nothing.
    Unlimited,
}

/// How specific the pattern of a row is: of two rows that match a key the greater decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Specificity {
    /// A network, by its prefix length in bits.
    Network(u8),
    /// A key prefix, by its length in bytes.
    Prefix(usize),
    /// The key itself.
    Exact,
}

/// The row that decides for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) specificity: Specificity,
    /// Index into [`Overrides::overrides`].
    pub(crate) index: usize,
}

impl Match {
    fn new(specificity: Specificity, row: Row) -> Self {
        Match { specificity, index: to_usize(row.index) }
    }
}

impl Overrides {
    /// Returns an empty builder.
    #[must_use]
    pub fn builder() -> OverridesBuilder {
        OverridesBuilder::default()
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the patterns of all rows, in no particular order.
    pub fn patterns(&self) -> impl Iterator<Item = KeyPattern<'_>> {
        let rows = &*self.0;
        let exact = rows.exact.keys().map(|key| Shape::Exact((&**key).into()));
        let prefixes = rows.prefixes.keys().map(|prefix| Shape::Prefix((&**prefix).into()));
        let networks = rows.networks.keys().map(|network| Shape::Network(*network));
        exact.chain(prefixes).chain(networks).map(KeyPattern)
    }

    /// Finds the row that decides for a key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Match> {
        let rows = &*self.0;
        if let Some(row) = rows.exact.get(key) {
            return Some(Match::new(Specificity::Exact, *row));
        }
        for length in rows.prefix_lengths.range(..=key.len()).rev() {
            if let Some(row) = rows.prefixes.get(&key[..*length]) {
                return Some(Match::new(Specificity::Prefix(*length), *row));
            }
        }
        if rows.networks.is_empty() {
            return None;
        }
        let network = network_of_key(key)?;
        for length in rows.network_lengths.range(..=network.prefix_len()).rev() {
            if let Some(row) = rows.networks.get(&shortened(network, *length)) {
                return Some(Match::new(Specificity::Network(*length), *row));
            }
        }
        None
    }

    /// Returns the distinct limits that the rows give.
    pub(crate) fn overrides(&self) -> &[Override] {
        &self.0.overrides
    }
}

/// The network of a shorter prefix length that contains this one.
fn shortened(network: IpNet, length: u8) -> IpNet {
    #[expect(clippy::expect_used, reason = "the caller passes a length up to the network's own")]
    IpNet::new(network.addr(), length).expect("the length fits the address").trunc()
}

/// Prints the number of rows only: there may be a million.
impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Collects the rows of [`Overrides`], up to [`MAX_OVERRIDES`].
#[derive(Default)]
pub struct OverridesBuilder {
    rows: Rows,
    /// The index of the override that a text gives, by the text as written.
    by_text: HashMap<Box<str>, u32>,
    /// The same, by the canonical text.
    by_canonical: HashMap<Box<str>, u32>,
}

impl OverridesBuilder {
    /// Adds a row: a [`KeyPattern`], and limits joined by `;`, or `unlimited`.
    ///
    /// # Errors
    /// Returns an error, and adds nothing, if the pattern or the limits are invalid, if an earlier
    /// row has the same pattern, or if there are [`MAX_OVERRIDES`] rows already.
    pub fn add(&mut self, pattern: &str, limits: &str) -> Result<(), OverrideError> {
        let pattern = KeyPattern::parse(pattern).map_err(OverrideError::Pattern)?;
        self.add_pattern(pattern, limits)
    }

    /// Adds a row for a pattern that is parsed already, or for a key that is not UTF-8.
    ///
    /// # Errors
    /// As [`OverridesBuilder::add`].
    pub fn add_pattern(
        &mut self,
        pattern: KeyPattern<'_>,
        limits: &str,
    ) -> Result<(), OverrideError> {
        let number = self.len();
        if number >= MAX_OVERRIDES {
            return Err(OverrideError::TooMany);
        }
        let row = Row { index: self.override_index(limits)?, number: to_u32(number) };
        let rows = &mut self.rows;
        match pattern.0 {
            Shape::Exact(key) => insert(&mut rows.exact, key.into(), row)?,
            Shape::Prefix(prefix) => {
                let length = prefix.len();
                insert(&mut rows.prefixes, prefix.into(), row)?;
                rows.prefix_lengths.insert(length);
            }
            Shape::Network(network) => {
                insert(&mut rows.networks, network, row)?;
                rows.network_lengths.insert(network.prefix_len());
            }
        }
        Ok(())
    }

    /// Returns the index of the override that a text gives; equal limits share one, however they
    /// are written.
    fn override_index(&mut self, limits: &str) -> Result<u32, OverrideError> {
        if let Some(index) = self.by_text.get(limits) {
            return Ok(*index);
        }
        let parsed = Override::parse(limits).map_err(OverrideError::Limits)?;
        let new = to_u32(self.rows.overrides.len());
        let index = *self.by_canonical.entry(parsed.canonical().into()).or_insert(new);
        if index == new {
            self.rows.overrides.push(parsed);
        }
        self.by_text.insert(limits.into(), index);
        Ok(index)
    }

    /// Returns the number of rows added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether no row was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Builds the overrides.
    #[must_use]
    pub fn build(self) -> Overrides {
        let mut rows = self.rows;
        rows.exact.shrink_to_fit();
        rows.prefixes.shrink_to_fit();
        rows.networks.shrink_to_fit();
        rows.overrides.shrink_to_fit();
        Overrides(Arc::new(rows))
    }
}

fn insert<K: Eq + std::hash::Hash>(
    rows: &mut HashMap<K, Row, RandomState>,
    key: K,
    row: Row,
) -> Result<(), OverrideError> {
    match rows.entry(key) {
        Entry::Occupied(first) => {
            Err(OverrideError::Duplicate { first: to_usize(first.get().number) })
        }
        Entry::Vacant(vacant) => {
            vacant.insert(row);
            Ok(())
        }
    }
}

impl fmt::Debug for OverridesBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverridesBuilder").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The word for no limit.
const UNLIMITED: &str = "unlimited";

impl Override {
    /// Parses limits, or `unlimited`.
    pub(crate) fn parse(text: &str) -> Result<Self, NotationError> {
        match text.trim() {
            UNLIMITED => Ok(Override::Unlimited),
            limits => limits.parse().map(Override::Limits),
        }
    }

    /// Returns the same text for equal limits, however they were written.
    fn canonical(&self) -> &str {
        match self {
            Override::Limits(limits) => limits.name(),
            Override::Unlimited => UNLIMITED,
        }
    }

    /// Returns the policy with these limits in place of its own.
    pub(crate) fn apply(&self, policy: &Policy) -> Policy {
        match self {
            Override::Limits(limits) => policy.with_limits_of(limits),
            // The limits stay, so that `inspect` shows earlier usage; the deny list stays, too.
            Override::Unlimited => policy.clone().with_allow_list(KeyList::from_iter(["*"])),
        }
    }
}

#[expect(clippy::expect_used, reason = "MAX_OVERRIDES bounds every index")]
fn to_u32(index: usize) -> u32 {
    index.try_into().expect("an index is below MAX_OVERRIDES")
}

#[expect(clippy::expect_used, reason = "every index was a usize")]
fn to_usize(index: u32) -> usize {
    index.try_into().expect("an index fits usize")
}

/// Why an override was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// The pattern is invalid.
    Pattern(PatternError),
    /// The text is neither limits nor `unlimited`.
    Limits(NotationError),
    /// An earlier row has the same pattern.
    Duplicate {
        /// The position of that row in the order of addition, from 0.
        first: usize,
    },
    /// There are [`MAX_OVERRIDES`] rows already.
    TooMany,
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideError::Pattern(pattern) => pattern.fmt(f),
            OverrideError::Limits(limits) => write!(f, "{limits} (write unlimited for no limit)"),
            OverrideError::Duplicate { .. } => {
                f.write_str("an earlier row has the same pattern; remove one of them")
            }
            OverrideError::TooMany => write!(
                f,
                "more than {MAX_OVERRIDES} overrides; match several keys with one row, such as \
                 bot-*, or use tiers"
            ),
        }
    }
}

impl std::error::Error for OverrideError {}

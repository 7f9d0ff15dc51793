//! Tiers: other limits for the keys of a plan, by the name of the plan.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use tollgate_algorithms::NotationError;

use crate::overrides::Override;

/// The maximum length of a tier name, in bytes.
const MAX_NAME_LEN: usize = 128;

/// Other limits for the keys of a plan, by the name of the plan, which a caller passes with the key.
///
/// # Examples
/// ```
/// use tollgate::{Policies, Tiers};
///
/// let mut tiers = Tiers::new();
/// tiers.add("pro", "100/s")?;
/// let mut policies = Policies::new();
/// policies.define("api", "10/s")?;
/// policies.set_tiers("api", &tiers)?;
/// assert_eq!(policies.resolve("api", b"user:42", Some("pro"))?.to_string(), "100/s");
/// let error = policies.resolve("api", b"user:42", Some("gold")).unwrap_err();
/// assert_eq!(error.to_string(), r#"policy "api" has no tier "gold"; it has pro"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tiers(BTreeMap<Box<str>, Override>);

impl Tiers {
    /// Returns an empty set of tiers.
    #[must_use]
    pub fn new() -> Self {
        Tiers::default()
    }

    /// Adds a tier: its name, and limits joined by `;`, or `unlimited`.
    ///
    /// # Errors
    /// Returns an error if the name is taken, empty, longer than 128 bytes or has white space or
    /// control characters, or if the limits are invalid.
    pub fn add(&mut self, name: &str, limits: &str) -> Result<(), TierError> {
        let invalid = |c: char| c.is_whitespace() || c.is_control();
        if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains(invalid) {
            return Err(TierError::Name);
        }
        let tier = Override::parse(limits).map_err(TierError::Limits)?;
        match self.0.entry(name.into()) {
            Entry::Occupied(_) => Err(TierError::Duplicate),
            Entry::Vacant(vacant) => {
                vacant.insert(tier);
                Ok(())
            }
        }
    }

    /// Returns whether there are no tiers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the tiers, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|key| &**key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Override)> {
        self.0.iter().map(|(name, tier)| (&**name, tier))
    }
}

/// Why a tier was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierError {
    /// The name is invalid.
    Name,
    /// The name is taken.
    Duplicate,
    /// The text is neither limits nor `unlimited`.
    Limits(NotationError),
}

impl fmt::Display for TierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierError::Name => write!(
                f,
                "a tier name has 1 to {MAX_NAME_LEN} bytes and no white space, such as pro"
            ),
            TierError::Duplicate => {
                f.write_str("a tier with this name already exists; choose another name")
            }
            TierError::Limits(limits) => write!(f, "{limits} (write unlimited for no limit)"),
        }
    }
}

impl std::error::Error for TierError {}

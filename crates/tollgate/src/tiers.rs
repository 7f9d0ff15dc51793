//! Tiers: other limits for the keys of a plan, by its name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use tollgate_core::NotationError;

use crate::overrides::Allowance;

/// The most bytes of a tier's name.
const MAX_NAME_LEN: usize = 128;

/// Other limits for the keys of a plan, by its name, which whoever asks says with the key.
///
/// # Example
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
pub struct Tiers(BTreeMap<Box<str>, Allowance>);

impl Tiers {
    /// No tier yet.
    #[must_use]
    pub fn new() -> Self {
        Tiers::default()
    }

    /// Adds a tier: its name, and its limits, joined by `;`, or `unlimited`.
    ///
    /// # Errors
    /// The name is taken, empty, longer than 128 bytes or has white space or control characters;
    /// the text is not limits.
    pub fn add(&mut self, name: &str, limits: &str) -> Result<(), TierError> {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains(odd) {
            return Err(TierError::Name);
        }
        let allowance = Allowance::parse(limits).map_err(TierError::Limits)?;
        match self.0.entry(name.into()) {
            Entry::Occupied(_) => Err(TierError::Duplicate),
            Entry::Vacant(vacant) => {
                vacant.insert(allowance);
                Ok(())
            }
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|key| &**key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Allowance)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

/// Why a tier was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierError {
    /// The name cannot be one.
    Name,
    /// There is a tier of this name.
    Duplicate,
    /// The text is neither limits nor `unlimited`.
    Limits(NotationError),
}

impl fmt::Display for TierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierError::Name => write!(
                f,
                "a tier's name has 1 to {MAX_NAME_LEN} bytes, without white space; write one such \
                 as pro"
            ),
            TierError::Duplicate => {
                f.write_str("there is a tier of this name already; give this one another name")
            }
            TierError::Limits(limits) => write!(f, "{limits} (for no limit write unlimited)"),
        }
    }
}

impl std::error::Error for TierError {}

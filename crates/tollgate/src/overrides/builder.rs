//! How overrides are gathered.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::allowance::Allowance;
use super::error::OverrideError;
use super::network::Network;
use super::networks::Networks;
use super::pattern::{KeyPattern, Shape};
use super::prefixes::Prefixes;
use super::text_map::{NotAdded, TextMap};
use super::{MAX_OVERRIDES, Overrides, Rows, place};

/// Overrides to be gathered, up to [`MAX_OVERRIDES`].
#[derive(Default)]
pub struct OverridesBuilder {
    rows: usize,
    exact: Texts,
    prefixes: Texts,
    networks: BTreeMap<Network, Given>,
    allowances: Vec<Allowance>,
    /// What limits give, as they were written, by number.
    written: HashMap<Box<str>, u32>,
    /// The same, as they are written canonically.
    canonical: HashMap<Box<str>, u32>,
}

/// Whole keys, or beginnings, each with the row that it is of.
#[derive(Default)]
struct Texts {
    given: TextMap,
    rows: Vec<u32>,
}

/// What a row gives, and which row it is.
#[derive(Clone, Copy)]
struct Given {
    allowance: u32,
    row: u32,
}

impl OverridesBuilder {
    /// Adds a row: which keys, as [`KeyPattern`] says, and their limits, joined by `;`, or
    /// `unlimited`.
    ///
    /// # Errors
    /// Either cannot be read, an earlier row is of the same keys, or there are too many. The row
    /// is then not added, and the others stay.
    pub fn add(&mut self, pattern: &str, limits: &str) -> Result<(), OverrideError> {
        let pattern = KeyPattern::parse(pattern).map_err(OverrideError::Pattern)?;
        self.add_pattern(pattern, limits)
    }

    /// The same, of a pattern that was read before, or of a key that is no text.
    ///
    /// # Errors
    /// As [`OverridesBuilder::add`].
    pub fn add_pattern(
        &mut self,
        pattern: KeyPattern<'_>,
        limits: &str,
    ) -> Result<(), OverrideError> {
        if self.rows >= MAX_OVERRIDES {
            return Err(OverrideError::TooMany);
        }
        let row = u32::try_from(self.rows).map_err(|_| OverrideError::TooMany)?;
        let given = Given { allowance: self.number(limits)?, row };
        match pattern.0 {
            Shape::Exact(key) => self.exact.add(&key, given)?,
            Shape::Prefix(prefix) => self.prefixes.add(&prefix, given)?,
            Shape::Network(network) => match self.networks.entry(network) {
                Entry::Occupied(occupied) => return Err(occupied.get().is_first()),
                Entry::Vacant(vacant) => {
                    vacant.insert(given);
                }
            },
        }
        self.rows += 1;
        Ok(())
    }

    /// The number of what a text gives; the same for equal limits, however written.
    fn number(&mut self, limits: &str) -> Result<u32, OverrideError> {
        if let Some(known) = self.written.get(limits) {
            return Ok(*known);
        }
        let allowance = Allowance::parse(limits).map_err(OverrideError::Limits)?;
        let new = u32::try_from(self.allowances.len()).map_err(|_| OverrideError::TooMany)?;
        let number = *self.canonical.entry(allowance.canonical().into()).or_insert(new);
        if number == new {
            self.allowances.push(allowance);
        }
        self.written.insert(limits.into(), number);
        Ok(number)
    }

    /// How many rows were added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether no row was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The overrides.
    #[must_use]
    pub fn build(self) -> Overrides {
        let networks = self.networks.into_iter().map(|(x, given)| (x, given.allowance));
        Overrides(Arc::new(Rows {
            exact: self.exact.given.shrunk(),
            prefixes: Prefixes::new(self.prefixes.given.shrunk()),
            networks: Networks::of_sorted(networks),
            allowances: self.allowances.into_boxed_slice(),
        }))
    }
}

impl Texts {
    fn add(&mut self, text: &[u8], given: Given) -> Result<(), OverrideError> {
        match self.given.add(text, given.allowance) {
            Ok(()) => {
                self.rows.push(given.row);
                Ok(())
            }
            Err(NotAdded::Full) => Err(OverrideError::TooLong),
            Err(NotAdded::Known(number)) => {
                let row = self.rows.get(place(number)).copied().unwrap_or_default();
                Err(Given { row, ..given }.is_first())
            }
        }
    }
}

impl Given {
    /// What to say of a second row of the same keys.
    fn is_first(&self) -> OverrideError {
        OverrideError::Duplicate { first: place(self.row) }
    }
}

impl fmt::Debug for OverridesBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverridesBuilder").field("len", &self.rows).finish_non_exhaustive()
    }
}

//! Policies by name, and limits given per call.

use std::collections::HashMap;
use std::fmt;
use std::sync::RwLock;

use tollgate_core::{NotationError, Policy, PolicyError, parse_limits};

/// How many limits given as text are kept parsed.
const MOST_INTERNED: usize = 1_024;

/// Policies by name.
///
/// # Example
/// ```
/// use tollgate::Policies;
/// let mut policies = Policies::new();
/// policies.define("api", "10/s burst 20; 1000/h sliding by 1m")?;
/// assert_eq!(policies.get("api")?.limits().len(), 2);
/// let unknown = policies.get("apj").unwrap_err();
/// assert_eq!(unknown.to_string(), r#"there is no policy "apj"; did you mean "api"?"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policies(HashMap<Box<str>, Policy>);

impl Policies {
    /// No policy yet.
    #[must_use]
    pub fn new() -> Self {
        Policies::default()
    }

    /// Gives limits, as text, a name.
    ///
    /// # Errors
    /// The name is taken or not a name; the text is not limits.
    pub fn define(&mut self, name: &str, limits: &str) -> Result<&Policy, DefineError> {
        let limits = parse_limits(limits).map_err(DefineError::Notation)?;
        self.add(Policy::new(name, limits).map_err(DefineError::Policy)?)
    }

    /// Adds a policy under its name.
    ///
    /// # Errors
    /// The name is taken.
    pub fn add(&mut self, policy: Policy) -> Result<&Policy, DefineError> {
        let name: Box<str> = policy.name().into();
        match self.0.entry(name) {
            std::collections::hash_map::Entry::Occupied(it) => {
                Err(DefineError::Duplicate(it.key().clone()))
            }
            std::collections::hash_map::Entry::Vacant(it) => Ok(it.insert(policy)),
        }
    }

    /// The policy of this name.
    ///
    /// # Errors
    /// There is none; the error suggests the name that comes nearest.
    pub fn get(&self, name: &str) -> Result<&Policy, UnknownPolicy> {
        self.0.get(name).ok_or_else(|| UnknownPolicy {
            name: name.into(),
            nearest: self.nearest(name).map(Into::into),
        })
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_unstable_by_key(|it| it.name());
        all.into_iter()
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        let near = |it: &&str| distance(it, name) <= 2;
        let mut names: Vec<_> = self.0.keys().map(|it| &**it).filter(near).collect();
        names.sort_unstable_by_key(|it| (distance(it, name), *it));
        names.first().copied()
    }
}

/// Levenshtein's distance: the fewest letters to add, leave out or change.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Policies made from text, parsed once: a bounded memory of limits given per call.
#[derive(Debug, Default)]
pub(crate) struct Interned(RwLock<HashMap<Box<str>, Policy>>);

impl Interned {
    /// The policy of these limits, called `=` and their canonical text.
    pub(crate) fn get(&self, limits: &str) -> Result<Policy, NotationError> {
        let known = self.0.read().unwrap_or_else(|it| it.into_inner()).get(limits).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let policy: Policy = limits.parse()?;
        let mut all = self.0.write().unwrap_or_else(|it| it.into_inner());
        if all.len() >= MOST_INTERNED {
            // Rather parse again now and then than remember which text was used last.
            all.clear();
        }
        all.insert(limits.into(), policy.clone());
        Ok(policy)
    }
}

/// Why a policy was not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefineError {
    /// A policy of this name is there already.
    Duplicate(Box<str>),
    /// The text is not limits.
    Notation(NotationError),
    /// The limits, or the name, do not make a policy.
    Policy(PolicyError),
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefineError::Duplicate(name) => {
                write!(f, "there is a policy {name:?} already; give this one another name")
            }
            DefineError::Notation(it) => it.fmt(f),
            DefineError::Policy(it) => it.fmt(f),
        }
    }
}

impl std::error::Error for DefineError {}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    name: Box<str>,
    nearest: Option<Box<str>>,
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no policy {:?}", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
            None => f.write_str("; define it, or give a limit in its place"),
        }
    }
}

impl std::error::Error for UnknownPolicy {}

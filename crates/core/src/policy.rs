//! A policy: a named list of limits that are decided together.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::codec::Script;
use crate::error::PolicyError;
use crate::fallback::OnStoreError;
use crate::key_list::{KeyList, Listed};
use crate::limit::Limit;
use crate::notation::{NotationError, parse_limits};

/// The most limits of a policy.
pub const MAX_LIMITS: usize = 16;
/// How many entries a log keeps unless the policy says otherwise.
pub const LOG_ENTRIES: usize = 10_000;
/// How many entries a log keeps at least, whatever the policy says.
const MIN_LOG_ENTRIES: usize = 4;

/// A named list of limits, in canonical order. Cloning one is cheap.
///
/// A policy made from text is called `=` and its canonical text, so that it never shares state
/// with one that was given a name.
///
/// # Example
/// ```
/// use tollgate_core::Policy;
/// let policy: Policy = "120/min fixed; 10/s fixed".parse()?;
/// assert_eq!(policy.to_string(), "10/s fixed; 120/min fixed");
/// assert_eq!(policy.name(), "=10/s fixed; 120/min fixed");
/// # Ok::<(), tollgate_core::NotationError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Policy(Arc<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    name: Box<str>,
    limits: Box<[Limit]>,
    shadow: bool,
    log_entries: usize,
    max_keys: Option<usize>,
    on_store_error: OnStoreError,
    allow: KeyList,
    deny: KeyList,
    /// Whether either list has a key.
    lists: bool,
    /// Whether a check of it is one limit and nothing else.
    plain: bool,
    /// A hash of the name, for stores to mix into that of the key.
    name_hash: u64,
    /// What a script is told of it.
    script: Script,
}

impl Policy {
    /// A policy of these limits, in any order; of equal ones it keeps one.
    ///
    /// # Errors
    /// The name is not a letter followed by letters, digits, `_`, `-` and `.`, at most 128 in
    /// all; there is no limit, or there are more than 16.
    pub fn new(name: &str, limits: impl IntoIterator<Item = Limit>) -> Result<Policy, PolicyError> {
        if !can_be_given(name) {
            return Err(PolicyError::Name);
        }
        Policy::named(name.to_owned(), limits.into_iter().collect())
    }

    /// A policy that stands for what a protocol of another kind asks: its name begins with `@`, so
    /// that it never shares state with one that was given a name.
    ///
    /// # Errors
    /// As [`Policy::new`], of what follows the `@`.
    pub fn of_protocol(
        name: &str,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<Policy, PolicyError> {
        if !is_of_protocol(name) {
            return Err(PolicyError::Name);
        }
        Policy::named(name.to_owned(), limits.into_iter().collect())
    }

    fn named(name: String, mut limits: Vec<Limit>) -> Result<Policy, PolicyError> {
        limits.sort_unstable();
        limits.dedup();
        match limits.len() {
            0 => return Err(PolicyError::NoLimit),
            1..=MAX_LIMITS => {}
            many => return Err(PolicyError::TooManyLimits(many)),
        }
        let name_hash = Policy::hash_of_name(&name);
        Ok(Policy(Arc::new(Parts {
            name: name.into_boxed_str(),
            limits: limits.into_boxed_slice(),
            shadow: false,
            log_entries: LOG_ENTRIES,
            max_keys: None,
            on_store_error: OnStoreError::default(),
            allow: KeyList::default(),
            deny: KeyList::default(),
            lists: false,
            plain: false,
            name_hash,
            script: Script::default(),
        }))
        .with(|_| ()))
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Policy {
        let parts = Arc::make_mut(&mut self.0);
        change(parts);
        parts.lists = !parts.allow.is_empty() || !parts.deny.is_empty();
        parts.plain = parts.is_plain();
        parts.script = Script::of(&parts.limits, parts.shadow, parts.log_entries);
        self
    }

    /// Decides and records, but never denies.
    #[must_use]
    pub fn shadow(self) -> Policy {
        self.with(|x| x.shadow = true)
    }

    /// The policy of this name with other limits, if they can be a policy's; lists are not kept.
    pub(crate) fn with_limits(&self, limits: Vec<Limit>) -> Option<Policy> {
        let other = Policy::named(self.name().to_owned(), limits).ok()?;
        Some(other.with(|other| {
            other.shadow = self.is_shadow();
            other.log_entries = self.log_entries();
        }))
    }

    /// The same policy with the limits of another: name, lists, bounds and what it answers without
    /// its store stay. State is kept by name and key, so a key that comes under this form goes on
    /// from what it has used under the other.
    ///
    /// # Example
    /// ```
    /// use tollgate_core::Policy;
    /// let api = Policy::new("api", ["10/s".parse()?])?.shadow();
    /// let vip = api.with_limits_of(&"100/s; 1000/min".parse()?);
    /// assert_eq!((vip.name(), vip.limits().len(), vip.is_shadow()), ("api", 2, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_limits_of(&self, other: &Policy) -> Policy {
        self.clone().with(|x| x.limits.clone_from(&other.0.limits))
    }

    /// Keeps at most this many entries in a log, at least 4; the oldest merge beyond that.
    #[must_use]
    pub fn with_log_entries(self, most: usize) -> Policy {
        self.with(|x| x.log_entries = most.max(MIN_LOG_ENTRIES))
    }

    /// Gives the policy's keys a table of their own with at most this many.
    #[must_use]
    pub fn with_max_keys(self, most: usize) -> Policy {
        self.with(|x| x.max_keys = Some(most.max(1)))
    }

    /// Answers so while its store gives no answer; denies unless told otherwise.
    #[must_use]
    pub fn with_on_store_error(self, answer: OnStoreError) -> Policy {
        self.with(|x| x.on_store_error = answer)
    }

    /// Always admits these keys, and charges them nothing.
    #[must_use]
    pub fn with_allow_list(self, keys: KeyList) -> Policy {
        self.with(|x| x.allow = keys)
    }

    /// Always denies these keys, even those on the other list.
    #[must_use]
    pub fn with_deny_list(self, keys: KeyList) -> Policy {
        self.with(|x| x.deny = keys)
    }

    /// What its lists say of a key before any limit is asked.
    #[must_use]
    #[inline]
    pub fn listed(&self, key: &[u8]) -> Option<Listed> {
        if !self.0.lists {
            return None;
        }
        if self.0.deny.contains(key) {
            return Some(Listed::Deny);
        }
        self.0.allow.contains(key).then_some(Listed::Allow)
    }

    /// Whether some policy has this name: one that can be given, one that stands for a protocol,
    /// or `=` and canonical limits.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        match name.strip_prefix('=') {
            Some(limits) => limits.parse::<Policy>().is_ok_and(|limit| limit.name() == name),
            None => can_be_given(name) || is_of_protocol(name),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its limits in canonical order.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.0.limits
    }

    /// Whether a check of it is one limit and nothing else: no list, no table of its own, not of
    /// requests in flight, not a shadow.
    #[must_use]
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    pub(crate) fn script(&self) -> &Script {
        &self.0.script
    }

    /// Whether it decides and records, but never denies.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.0.shadow
    }

    /// How many entries a log keeps.
    #[must_use]
    pub fn log_entries(&self) -> usize {
        self.0.log_entries
    }

    /// The bound of its own table of keys, if it has one.
    #[must_use]
    pub fn max_keys(&self) -> Option<usize> {
        self.0.max_keys
    }

    /// What it answers while its store gives no answer.
    #[must_use]
    pub fn on_store_error(&self) -> OnStoreError {
        self.0.on_store_error
    }

    /// Whether any of its limits is one of requests in flight.
    #[must_use]
    pub fn has_concurrent(&self) -> bool {
        self.limits().iter().any(Limit::is_concurrent)
    }

    /// A hash of the name, the same in every process; not one to meet an attacker with.
    #[must_use]
    pub fn name_hash(&self) -> u64 {
        self.0.name_hash
    }

    /// The [`Policy::name_hash`] of the policies of this name.
    #[must_use]
    pub fn hash_of_name(name: &str) -> u64 {
        fnv1a(name.as_bytes())
    }

    /// Whether this is the very same policy, not one that looks alike. No more than an address.
    #[must_use]
    #[inline]
    pub fn is(&self, other: &Policy) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether state kept under `other` is this policy's, perhaps of other numbers.
    #[must_use]
    #[inline]
    pub fn shares_name(&self, other: &Policy) -> bool {
        self.is(other) || (self.0.name_hash == other.0.name_hash && self.0.name == other.0.name)
    }
}

impl Parts {
    fn is_plain(&self) -> bool {
        let bare = !self.shadow && !self.lists && self.max_keys.is_none();
        bare && matches!(&*self.limits, [limit] if !limit.is_concurrent())
    }
}

fn can_be_given(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    begins && name.chars().all(inner) && name.len() <= 128
}

fn is_of_protocol(name: &str) -> bool {
    name.len() <= 128 && name.strip_prefix('@').is_some_and(can_be_given)
}

/// Fowler, Noll and Vo's hash 1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl FromStr for Policy {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let mut limits = parse_limits(text)?;
        limits.sort_unstable();
        limits.dedup();
        let canonical = Canonical(&limits).to_string();
        let name = alloc::format!("={canonical}");
        Policy::named(name, limits).map_err(|error| NotationError::of_policy(text, error))
    }
}

struct Canonical<'a>(&'a [Limit]);

impl fmt::Display for Canonical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, limit) in self.0.iter().enumerate() {
            let joint = if index == 0 { "" } else { "; " };
            write!(f, "{joint}{limit}")?;
        }
        Ok(())
    }
}

/// The canonical text of its limits, joined by `;`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Canonical(self.limits()).fmt(f)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policy({}: {self})", self.name())
    }
}

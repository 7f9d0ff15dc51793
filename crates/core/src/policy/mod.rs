//! A policy: a named list of limits that are checked together.

mod ban;
mod hold;
mod key_list;
mod on_store_error;
#[cfg(feature = "serde")]
mod serialize;

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;

use crate::decision::MAX_INLINE_LIMITS;
use crate::error::PolicyError;
use crate::limit::Limit;
use crate::notation::{NotationError, parse_limits};
pub(crate) use ban::MAX_DENIALS;
pub use ban::{Ban, BanError, BanState};
use hold::Hold;
pub use hold::{HoldError, MIN_LEASE};
pub use key_list::{KeyList, Listed};
pub use on_store_error::OnStoreError;

/// The most limits of a policy.
pub const MAX_LIMITS: usize = 16;
/// The default for the most entries of a sliding log.
pub const LOG_ENTRIES: usize = 10_000;
/// The least value of that maximum.
const MIN_LOG_ENTRIES: usize = 4;

/// A named list of limits in canonical order. Cloning is cheap.
///
/// The name and the key of a check find what the key has used: give each policy a name of its own.
///
/// # Example
/// ```
/// use tollgate_algorithms::Policy;
/// let policy = Policy::named("api", "120/min fixed; 10/s fixed")?;
/// assert_eq!((policy.name(), &*policy.to_string()), ("api", "10/s fixed; 120/min fixed"));
/// # Ok::<(), tollgate_algorithms::PolicyError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Policy(Arc<Parts>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Parts {
    name: Box<str>,
    limits: Box<[Limit]>,
    shadow: bool,
    log_entries: usize,
    max_keys: Option<usize>,
    on_store_error: OnStoreError,
    ban: Option<Ban>,
    hold: Option<Hold>,
    allow: KeyList,
    deny: KeyList,
    /// Whether one of the lists has a key.
    lists: bool,
    /// The number of limits if a check involves nothing else; otherwise 0.
    plain_limits: usize,
    /// A hash of the name, for stores to combine with that of the key.
    name_hash: u64,
}

/// The identity of a policy, which does not keep the policy alive.
///
/// Clones of a policy have the same identity; policies with equal contents do not. A cache uses it
/// as a key.
#[derive(Clone, Debug)]
pub struct PolicyIdentity(Weak<Parts>);

impl PolicyIdentity {
    /// Whether a clone of the policy still exists.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl PartialEq for PolicyIdentity {
    fn eq(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PolicyIdentity {}

impl Hash for PolicyIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Weak::as_ptr(&self.0).hash(state);
    }
}

impl Policy {
    /// Creates a policy with a name from the text of its limits.
    ///
    /// Usage is stored by the policy's name and the key, so that two policies with different names
    /// never count together, whatever their limits are.
    ///
    /// # Errors
    /// The name is not valid, see [`Policy::new`]; or the limits are not.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::Policy;
    /// let login = Policy::named("login", "5/15min log")?;
    /// let signup = Policy::named("signup", "5/15min log")?;
    /// assert!(!login.shares_name(&signup));
    ///
    /// let error = Policy::named("log in", "5/15min log").unwrap_err();
    /// assert!(error.to_string().ends_with("did you mean \"log-in\"?"));
    /// # Ok::<(), tollgate_algorithms::PolicyError>(())
    /// ```
    pub fn named(name: &str, limits: &str) -> Result<Policy, PolicyError> {
        Policy::new(name, parse_limits(limits).map_err(PolicyError::Notation)?)
    }

    /// Creates a policy of these limits, in any order. Duplicates are removed.
    ///
    /// # Errors
    /// The name is not a letter followed by letters, digits, `_`, `-` and `.`, at most 128 in
    /// all; there is no limit, or there are more than 16.
    pub fn new(name: &str, limits: impl IntoIterator<Item = Limit>) -> Result<Policy, PolicyError> {
        if !is_plain_name(name) {
            return Err(PolicyError::Name(name.into()));
        }
        Policy::from_parts(name.to_owned(), limits.into_iter().collect())
    }

    /// Creates a policy for the limits of another protocol. Its name begins with `@`, so that it
    /// never shares state with a configured policy.
    ///
    /// # Errors
    /// As for [`Policy::new`], for the name after the `@`.
    pub fn reserved(
        name: &str,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<Policy, PolicyError> {
        if !is_reserved_name(name) {
            return Err(PolicyError::Name(name.into()));
        }
        Policy::from_parts(name.to_owned(), limits.into_iter().collect())
    }

    /// Creates a policy whose name is the canonical text of its limits.
    fn unnamed(limits: Vec<Limit>) -> Result<Policy, PolicyError> {
        let limits = canonical(limits)?;
        let name = alloc::format!("={}", Canonical(&limits));
        Policy::from_parts(name, limits.into_vec())
    }

    fn from_parts(name: String, limits: Vec<Limit>) -> Result<Policy, PolicyError> {
        let limits = canonical(limits)?;
        let name_hash = Policy::hash_of_name(&name);
        Ok(Policy(Arc::new(Parts {
            name: name.into_boxed_str(),
            limits,
            log_entries: LOG_ENTRIES,
            name_hash,
            ..Parts::default()
        }))
        .with(|_| ()))
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Policy {
        let parts = Arc::make_mut(&mut self.0);
        change(parts);
        parts.lists = !parts.allow.is_empty() || !parts.deny.is_empty();
        let is_bare = !parts.shadow && !parts.lists && parts.ban.is_none();
        let has_leases = parts.limits.iter().any(Limit::is_concurrent);
        let is_plain = is_bare && parts.max_keys.is_none() && !has_leases;
        parts.plain_limits = if is_plain { parts.limits.len() } else { 0 };
        self
    }

    /// Makes this a shadow policy: it decides and records, but never denies.
    #[must_use]
    pub fn shadow(self) -> Policy {
        self.with(|parts| parts.shadow = true)
    }

    /// The same policy with another name: one that is parsed from text has none of its own.
    ///
    /// # Errors
    /// The name is not valid, see [`Policy::new`].
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::Policy;
    /// let login = "5/15min log".parse::<Policy>()?.with_name("login")?;
    /// assert!(login.is_named());
    /// assert_eq!(login.to_string(), "5/15min log");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_name(self, name: &str) -> Result<Policy, PolicyError> {
        if !is_plain_name(name) {
            return Err(PolicyError::Name(name.into()));
        }
        let name_hash = Policy::hash_of_name(name);
        Ok(self.with(|parts| (parts.name, parts.name_hash) = (name.into(), name_hash)))
    }

    /// Whether the policy has a name of its own. The name of a policy that is parsed from text is its
    /// text, so that it counts together with every other policy of that text.
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.name().starts_with('=')
    }

    /// The same policy with other limits, which are not [leased](Policy::leased).
    ///
    /// # Errors
    /// There is no limit, or there are more than 16.
    pub fn with_limits(&self, limits: Vec<Limit>) -> Result<Policy, PolicyError> {
        let limits = canonical(limits)?;
        Ok(self.clone().with(|parts| (parts.limits, parts.hold) = (limits, None)))
    }

    /// The same policy with the limits of another, and its hold time. State is kept by name and key, so a key that is
    /// checked under this version continues from what it has used under the other.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::Policy;
    /// let api = Policy::new("api", ["10/s".parse()?])?.shadow();
    /// let vip = api.with_limits_of(&"100/s; 1000/min".parse()?);
    /// assert_eq!((vip.name(), vip.limits().len(), vip.is_shadow()), ("api", 2, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_limits_of(&self, other: &Policy) -> Policy {
        self.clone().with(|parts| {
            parts.limits.clone_from(&other.0.limits);
            parts.hold.clone_from(&other.0.hold);
        })
    }

    /// Sets the most entries of a sliding log, at least 4. Beyond that the oldest are merged.
    #[must_use]
    pub fn with_log_entries(self, max: usize) -> Policy {
        self.with(|parts| parts.log_entries = max.max(MIN_LOG_ENTRIES))
    }

    /// Gives the policy a table of its own with at most this many keys.
    #[must_use]
    pub fn with_max_keys(self, max: usize) -> Policy {
        self.with(|parts| parts.max_keys = Some(max.max(1)))
    }

    /// Sets the answer while the store is unavailable. The default is [`OnStoreError::Local`].
    #[must_use]
    pub fn with_on_store_error(self, answer: OnStoreError) -> Policy {
        self.with(|parts| parts.on_store_error = answer)
    }

    /// Bans keys that are denied too often; `None` bans no key.
    #[must_use]
    pub fn with_ban(self, ban: impl Into<Option<Ban>>) -> Policy {
        let ban = ban.into();
        self.with(|parts| parts.ban = ban)
    }

    /// Always admits these keys and charges them nothing.
    #[must_use]
    pub fn with_allow_list(self, keys: KeyList) -> Policy {
        self.with(|parts| parts.allow = keys)
    }

    /// Always denies these keys, also if they are on the allow list.
    #[must_use]
    pub fn with_deny_list(self, keys: KeyList) -> Policy {
        self.with(|parts| parts.deny = keys)
    }

    /// The list that has the key, if one does. The deny list comes first.
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

    /// Whether a policy can have this name: a plain name, a reserved one, or `=` and canonical
    /// limits.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        match name.strip_prefix('=') {
            Some(limits) => limits.parse::<Policy>().is_ok_and(|policy| policy.name() == name),
            None => is_plain_name(name) || is_reserved_name(name),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The limits in canonical order.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.0.limits
    }

    /// Whether a check involves one limit and nothing else: the policy has no list, no ban and no
    /// table of its own, is not a shadow policy and limits no concurrency. Such a check takes the fast path.
    #[must_use]
    #[inline]
    pub fn is_single_limit(&self) -> bool {
        self.0.plain_limits == 1
    }

    /// Whether a check involves one to four limits and nothing else.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        (1..=MAX_INLINE_LIMITS).contains(&self.0.plain_limits)
    }

    /// Whether this is a shadow policy, which decides and records but never denies.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.0.shadow
    }

    /// The most entries of a sliding log.
    #[must_use]
    pub fn log_entries(&self) -> usize {
        self.0.log_entries
    }

    /// The most keys of the policy's own table, if it has one.
    #[must_use]
    pub fn max_keys(&self) -> Option<usize> {
        self.0.max_keys
    }

    /// The answer while the store is unavailable.
    #[must_use]
    pub fn on_store_error(&self) -> OnStoreError {
        self.0.on_store_error
    }

    /// When keys are banned, if the policy bans any.
    #[must_use]
    pub fn ban(&self) -> Option<Ban> {
        self.0.ban
    }

    /// The ban of a policy that denies. A shadow policy does not deny, so it counts no denials.
    #[must_use]
    #[inline]
    pub fn enforced_ban(&self) -> Option<Ban> {
        self.0.ban.filter(|_| !self.is_shadow())
    }

    /// Whether one of the limits is a concurrency limit.
    #[must_use]
    pub fn has_concurrent(&self) -> bool {
        self.limits().iter().any(Limit::is_concurrent)
    }

    /// Whether one of the limits is no concurrency limit: what it charges can be refunded.
    #[must_use]
    pub fn has_quota(&self) -> bool {
        self.limits().iter().any(|limit| !limit.is_concurrent())
    }

    /// Whether a denial changes the state of a key: a ban or a `count-denied` limit counts it.
    #[must_use]
    pub fn counts_denials(&self) -> bool {
        self.enforced_ban().is_some() || self.limits().iter().any(Limit::counts_denied)
    }

    /// A hash of the name that is the same in every process. Not collision-resistant.
    #[must_use]
    pub fn name_hash(&self) -> u64 {
        self.0.name_hash
    }

    /// The [`Policy::name_hash`] of policies of this name.
    #[must_use]
    pub fn hash_of_name(name: &str) -> u64 {
        // The 64-bit FNV-1a hash.
        name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// Pointer equality; does not compare contents.
    #[must_use]
    #[inline]
    pub fn ptr_eq(&self, other: &Policy) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The identity of this policy and its clones.
    #[must_use]
    pub fn identity(&self) -> PolicyIdentity {
        PolicyIdentity(Arc::downgrade(&self.0))
    }

    /// Whether state of `other` is state of this policy, perhaps of another version of it.
    #[must_use]
    #[inline]
    pub fn shares_name(&self, other: &Policy) -> bool {
        self.ptr_eq(other) || (self.0.name_hash == other.0.name_hash && self.0.name == other.0.name)
    }
}

/// Sorts the limits, removes duplicates and checks their number.
fn canonical(mut limits: Vec<Limit>) -> Result<Box<[Limit]>, PolicyError> {
    limits.sort_unstable();
    limits.dedup();
    match limits.len() {
        0 => Err(PolicyError::NoLimit),
        1..=MAX_LIMITS => Ok(limits.into_boxed_slice()),
        many => Err(PolicyError::TooManyLimits(many)),
    }
}

fn is_plain_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    begins && name.chars().all(is_name_char) && name.len() <= 128
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// An invalid name with a hyphen in place of the characters that a name cannot contain, if that makes it
/// valid.
pub(crate) fn nearest_name(name: &str) -> Option<String> {
    let parts: Vec<_> = name.split(|c| !is_name_char(c)).filter(|part| !part.is_empty()).collect();
    Some(parts.join("-")).filter(|nearest| is_plain_name(nearest))
}

fn is_reserved_name(name: &str) -> bool {
    name.len() <= 128 && name.strip_prefix('@').is_some_and(is_plain_name)
}

/// Parses limits without a name, such as those that a request carries itself.
///
/// The policy has the name `=` plus its canonical text. Policies of the same text therefore **count
/// together**, wherever they are parsed; they never share usage with a named policy. For limits that
/// a program defines, use [`Policy::named`] or [`Policy::with_name`].
///
/// # Example
/// ```
/// use tollgate_algorithms::Policy;
/// let (login, signup): (Policy, Policy) = ("5/h".parse()?, "5/60min".parse()?);
/// assert_eq!(login.name(), "=5/h");
/// assert!(login.shares_name(&signup));
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
impl FromStr for Policy {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let invalid = |error| NotationError::from_policy(text, error);
        Policy::unnamed(parse_limits(text)?).map_err(invalid)
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

/// Writes the canonical text of the limits, joined by `;`.
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

//! The in-memory limiter, which decides on the caller's thread.

mod batch;
mod operations;

use std::fmt;
use std::sync::Arc;

use tollgate_algorithms::{
    Check, Cost, Decision, Inspection, Micros, NotationError, Operation, Policy, Request,
    RequestError, Timestamp,
};
use tollgate_state::{
    Answer, AsKey, Clock, KeyBuffer, MemoryStats, MemoryStore, MemoryStoreBuilder, RestoreReport,
    SaveReport, SnapshotDir, SnapshotError, TableFull,
};

#[cfg(feature = "tokio")]
use crate::guard::Waiters;
use crate::id::random_id;
use crate::lists::{self, Screening};
use crate::policies::PolicyCache;

/// A rate limiter that keeps its state in this process. Clones share the state.
///
/// A check cannot fail and never waits for I/O: it runs under the lock of one shard, and allocates
/// nothing if the key is known.
///
/// # Examples
/// ```
/// use tollgate::{Denied, MemoryLimiter, Outcome, Policy};
///
/// let limiter = MemoryLimiter::new();
/// let api = Policy::named("api", "2/h burst 2")?;
/// assert!(limiter.check(&api, "user:42").allowed);
/// assert!(limiter.check(&api, "user:42").allowed);
/// let outcome = limiter.check(&api, "user:42").outcome();
/// assert!(matches!(outcome, Outcome::Denied(Denied::RetryAfter(_))));
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryLimiter(Arc<Inner>);

#[derive(Default)]
struct Inner {
    store: MemoryStore,
    policies: PolicyCache,
    #[cfg(feature = "tokio")]
    waiters: Waiters,
}

/// Configures a [`MemoryLimiter`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryLimiterBuilder(MemoryStoreBuilder);

impl MemoryLimiterBuilder {
    /// Sets the maximum number of keys, at least 1; the default is a million.
    pub fn max_keys(self, max: usize) -> Self {
        MemoryLimiterBuilder(self.0.max_keys(max))
    }

    /// Sets the maximum number of bytes of keys, blocks and request ids together; the default is 256
    /// MiB. Request ids take at most half of it: beyond that the oldest are forgotten. When it is
    /// used up, keys are evicted as when there are `max_keys`; if no key can be evicted, the decision
    /// for a check that needs more memory is that of a full table.
    pub fn max_bytes(self, max: usize) -> Self {
        MemoryLimiterBuilder(self.0.max_bytes(max))
    }

    /// Sets what is decided for a new key when the table is full and no key can be evicted; the
    /// default is [`TableFull::Deny`].
    pub fn table_full(self, decision: TableFull) -> Self {
        MemoryLimiterBuilder(self.0.table_full(decision))
    }

    /// Uses this clock in place of the system's, for tests: a [`ManualClock`](crate::ManualClock), or a
    /// function.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use tollgate::{ManualClock, MemoryLimiter, Policy};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    /// let login = Policy::named("login", "1/min log")?;
    /// assert!(limiter.check(&login, "eve").allowed);
    /// clock.advance(Duration::from_micros(59_999_999));
    /// assert!(!limiter.check(&login, "eve").allowed);
    /// clock.advance(Duration::from_micros(1));
    /// assert!(limiter.check(&login, "eve").allowed);
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    ///
    /// A clock that follows tokio's, which a test can pause:
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// use tollgate::{Clock, MemoryLimiter, Timestamp};
    ///
    /// let start = tokio::time::Instant::now();
    /// let clock = Clock::from_fn(move || Timestamp::EPOCH.saturating_add(start.elapsed().into()));
    /// let limiter = MemoryLimiter::builder().clock(clock).build();
    /// ```
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        MemoryLimiterBuilder(self.0.clock(clock))
    }

    /// Sets how long request ids are remembered; the default is 30 s.
    pub fn request_id_horizon(self, horizon: impl Into<Micros>) -> Self {
        MemoryLimiterBuilder(self.0.request_id_horizon(horizon.into()))
    }

    /// Builds the limiter.
    #[must_use]
    pub fn build(self) -> MemoryLimiter {
        MemoryLimiter::with_store(self.0.build())
    }

    /// Builds the limiter from the newest snapshot in a directory.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read. An invalid snapshot is no error: it is
    /// quarantined, see [`RestoreReport::quarantined`].
    pub fn restore(
        self,
        directory: &SnapshotDir,
    ) -> Result<(MemoryLimiter, RestoreReport), SnapshotError> {
        let (store, restored) = directory.restore(self.0)?;
        Ok((MemoryLimiter::with_store(store), restored))
    }
}

impl MemoryLimiter {
    /// Creates a limiter for up to a million keys, on the system clock.
    #[must_use]
    pub fn new() -> Self {
        MemoryLimiter::default()
    }

    fn with_store(store: MemoryStore) -> Self {
        MemoryLimiter(Arc::new(Inner {
            store,
            policies: PolicyCache::default(),
            #[cfg(feature = "tokio")]
            waiters: Waiters::default(),
        }))
    }

    /// Returns a builder with the defaults.
    pub fn builder() -> MemoryLimiterBuilder {
        MemoryLimiterBuilder(MemoryStore::builder())
    }

    /// Parses limits into a policy; the most recent 1,024 texts are cached.
    ///
    /// # Errors
    /// Returns an error that points at the word that is wrong.
    pub fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        self.0.policies.get(limits)
    }

    /// Returns the limiter's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.store.now()
    }

    /// Checks and charges a cost of 1. With a concurrent limit it acquires a lease: the decision
    /// carries the lease to release.
    #[inline]
    pub fn check(&self, policy: &Policy, key: impl AsKey) -> Decision {
        self.check_cost(policy, key, Cost::ONE)
    }

    /// Checks and charges a cost; a cost of 0 is a peek.
    #[inline]
    pub fn check_cost(&self, policy: &Policy, key: impl AsKey, cost: Cost) -> Decision {
        let mut buffer = KeyBuffer::new();
        let key = key.as_key(&mut buffer);
        let decision = match policy.listed(key.as_bytes()) {
            Some(listed) => Decision::from_list(listed, self.now()),
            None => self.0.store.check(policy, key, cost, random_id),
        };
        #[cfg(feature = "tracing")]
        crate::events::record(policy, &decision);
        decision
    }

    /// Returns the state of a key: the usage of each limit, the block, leases and reservations, and
    /// when they expire.
    #[must_use]
    pub fn inspect(&self, policy: &Policy, key: impl AsKey) -> Inspection {
        self.0.store.inspect(policy, key.as_key(&mut KeyBuffer::new()))
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.0.waiters
    }

    pub(crate) fn shares_state(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn execute(
        &self,
        operation: Operation,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
    ) -> Result<Decision, RequestError> {
        let mut buffer = KeyBuffer::new();
        let key = key.as_key(&mut buffer);
        let checks = [Check::new(policy, &key).with_cost(cost)];
        let request = Request { operation, checks: &checks, request_id: None };
        self.decide(&request).map(Answer::into_decision)
    }

    /// Executes an operation that is valid for every policy, key and cost.
    fn execute_valid(
        &self,
        operation: Operation,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
    ) -> Decision {
        #[expect(clippy::expect_used, reason = "the callers pass such operations only")]
        self.execute(operation, policy, key, cost).expect("valid for every policy, key and cost")
    }

    /// Decides several checks together: all are charged if all are admitted, or none is. Each check has
    /// its own cost, so that requests, tokens and requests in flight can be limited at once.
    ///
    /// # Errors
    /// Returns an error if there is no check or more than 32, or if a key is empty or too long.
    ///
    /// # Examples
    /// ```
    /// use tollgate::{Check, Cost, MemoryLimiter, Policy};
    ///
    /// let limiter = MemoryLimiter::new();
    /// let requests = Policy::named("requests", "10/min")?;
    /// let tokens = Policy::named("tokens", "1000/min")?;
    /// let checks = [
    ///     Check::new(&requests, "user:42"),
    ///     Check::new(&tokens, "user:42").with_cost(Cost::from(800)),
    /// ];
    /// assert!(limiter.check_all(&checks)?.allowed());
    /// // The tokens do not suffice, so the request is not counted either.
    /// let denied = limiter.check_all(&checks)?;
    /// assert!(!denied.allowed() && denied.decisions[0].remaining == 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_all(&self, checks: &[Check<'_>]) -> Result<Answer, RequestError> {
        let operation = Operation::Check { lease: None };
        self.decide(&Request { operation, checks, request_id: None })
    }

    /// Executes a request: any operation, on one or several checks, with or without a request id.
    ///
    /// # Errors
    /// Returns an error if the request is invalid; see [`Request::validate`].
    ///
    /// # Examples
    /// ```
    /// use tollgate::{Check, MemoryLimiter, Operation, Policy, Request};
    ///
    /// let limiter = MemoryLimiter::new();
    /// let user = Policy::named("user", "10/min")?;
    /// let checks = [Check::new(&user, "user:42")];
    /// let operation = Operation::Check { lease: None };
    /// let request = Request { operation, checks: &checks, request_id: Some(b"4711") };
    /// assert!(limiter.decide(&request)?.allowed());
    /// // A repeated request is not charged again.
    /// let repeated = limiter.decide(&request)?.into_decision();
    /// assert!(repeated.replayed && repeated.remaining == 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide(&self, request: &Request<'_>) -> Result<Answer, RequestError> {
        let answer = self.decide_unrecorded(request)?;
        #[cfg(feature = "tracing")]
        crate::events::record_answer(request, &answer);
        Ok(answer)
    }

    /// As [`decide`](Self::decide), without events.
    pub(crate) fn decide_unrecorded(&self, request: &Request<'_>) -> Result<Answer, RequestError> {
        let listed = match lists::screen(request)? {
            Screening::Unlisted(request) => return self.0.store.decide_now(&request),
            Screening::Listed(listed) => listed,
        };
        let decisions = match listed.store_request() {
            Some(request) => self.0.store.decide_now(&request)?.decisions,
            None => Vec::new(),
        };
        Ok(listed.merge(decisions, self.now()))
    }

    /// Frees the memory of expired request ids, and of keys that recovered at least a second ago, among
    /// the next `slots` slots of each table, at least one of each shard. Policies with their own
    /// `max_keys` have tables of their own. Inserting new keys does the same.
    pub fn sweep(&self, slots: usize) {
        self.0.store.sweep(slots);
    }

    /// Writes a snapshot to a directory, atomically. Blocks until it is on disk; other threads keep
    /// deciding.
    ///
    /// # Errors
    /// Returns an error if the snapshot cannot be written. The previous snapshot stays.
    pub fn save(&self, directory: &SnapshotDir) -> Result<SaveReport, SnapshotError> {
        directory.save(&self.0.store)
    }

    /// Returns how full the table is, and counters. Locks each shard briefly, and reads no keys.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        self.0.store.stats()
    }

    /// Returns the bytes allocated for keys, blocks and request ids.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.store.bytes()
    }
}

/// Writes the number of keys, and no keys: they may be personal data, and there may be a million.
impl fmt::Debug for MemoryLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimiter").field("keys", &self.stats().keys).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_state::{Key, ManualClock};

    #[test]
    fn debug_output_has_no_keys() {
        let limiter = MemoryLimiter::new();
        let _ = limiter.check(&"1/s".parse().unwrap(), Key::new("secret").unwrap());
        assert_eq!(format!("{limiter:?}"), "MemoryLimiter { keys: 1, .. }");
    }

    #[test]
    fn a_deny_listed_check_denies_the_request_and_an_allow_listed_check_is_not_charged() {
        let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
        let listed = |policy: &str| policy.parse::<Policy>().unwrap();
        let user = listed("1/min").with_allow_list(["root"].into_iter().collect());
        let ip = listed("5/min").with_deny_list(["6.6.6.*"].into_iter().collect());
        let decide = |user_key: &[u8], ip_key: &[u8]| {
            let checks = [
                Check { policy: &user, key: user_key, cost: Cost::ONE },
                Check { policy: &ip, key: ip_key, cost: Cost::ONE },
            ];
            let operation = Operation::Check { lease: None };
            let request = Request { operation, checks: &checks, request_id: None };
            limiter.decide(&request).unwrap()
        };
        let denied = decide(b"bob", b"6.6.6.1");
        assert!(!denied.allowed());
        assert_eq!(denied.decisions[0].remaining, 1, "nothing is charged to the other check");
        assert_eq!(denied.decisions[1].reason, tollgate_algorithms::Reason::DenyList);
        for left in [4, 3] {
            let allowed = decide(b"root", b"1.1.1.1");
            assert!(allowed.allowed());
            assert_eq!(allowed.decisions[0].reason, tollgate_algorithms::Reason::AllowList);
            assert_eq!(allowed.decisions[1].remaining, left);
        }
    }

    #[test]
    fn settlements_leave_out_checks_that_an_allow_list_admitted() {
        let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
        let user: Policy = "9/min".parse().unwrap();
        let user = user.with_allow_list(["root"].into_iter().collect());
        let denied = user.clone().with_deny_list(["bob"].into_iter().collect());
        let decide = |operation, policy: &Policy, keys: [&[u8]; 2], costs: [u32; 2]| {
            let check = |index: usize| {
                let (key, cost) = (keys[index], Cost::from(costs[index]));
                Check { policy, key, cost }
            };
            let checks = [check(0), check(1)];
            limiter.decide(&Request { operation, checks: &checks, request_id: Some(b"id") })
        };
        let (check, keys) = (Operation::Check { lease: None }, [&b"root"[..], b"bob"]);
        assert!(decide(check, &user, keys, [3, 3]).unwrap().allowed());
        // The key was added to the deny list after the charge.
        let settled = decide(Operation::Settle, &denied, keys, [5, 5]).unwrap().decisions;
        assert_eq!(settled[0].reason, tollgate_algorithms::Reason::AllowList);
        assert_eq!((settled[1].granted, settled[1].remaining, settled[1].changed), (5, 4, true));
        let root = Key::new(b"root").unwrap();
        let listed = limiter.settle(&user, root, b"any", Cost::ONE).unwrap();
        assert!(listed.allowed && !listed.changed);
        let bob = Key::new(b"bob").unwrap();
        let unknown = limiter.settle(&user, bob, b"any", Cost::ONE);
        assert_eq!(unknown, Err(RequestError::UnknownCharge));
    }
}

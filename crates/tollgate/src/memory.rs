//! The limiter on memory: every answer at once, on the caller's own thread.

use std::sync::Arc;

use tollgate_core::{
    Check, Cost, Decision, Id, Inspection, Micros, NotationError, Operation, Policy, Request,
    RequestError, Timestamp,
};
use tollgate_store::{
    Answer, Key, ManualClock, MemoryStats, MemoryStore, MemoryStoreBuilder, RestoreReport,
    SaveReport, SnapshotDir, SnapshotError, TableFull, Usage,
};

use crate::id::random_id;
use crate::lists::{self, Screened};
use crate::policies::Interned;

/// A rate limiter whose state is in this process. Clones share it.
///
/// A check cannot fail and never waits: it is decided under the lock of one shard, and on a known
/// key it allocates nothing.
///
/// # Example
/// ```
/// use tollgate::{Key, MemoryLimiter, Policy};
///
/// let limiter = MemoryLimiter::new();
/// let api: Policy = "2/h burst 2".parse()?;
/// assert!(limiter.check(&api, Key::new("user:42")?).allowed());
/// assert!(limiter.check(&api, Key::new("user:42")?).allowed());
/// let denied = limiter.check(&api, Key::new("user:42")?);
/// assert!(!denied.allowed() && denied.retry_after().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryLimiter(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    store: MemoryStore,
    interned: Interned,
}

/// How a [`MemoryLimiter`] is built.
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryLimiterBuilder(MemoryStoreBuilder);

impl MemoryLimiterBuilder {
    /// Holds at most this many keys, at least 1; a million unless told otherwise.
    pub fn max_keys(self, most: usize) -> Self {
        MemoryLimiterBuilder(self.0.max_keys(most))
    }

    /// Tells new keys this when the table is full and nobody can leave.
    pub fn table_full(self, answer: TableFull) -> Self {
        MemoryLimiterBuilder(self.0.table_full(answer))
    }

    /// Decides by this clock, which stands still until it is moved: for your tests.
    ///
    /// # Example
    /// ```
    /// use tollgate::{Key, ManualClock, MemoryLimiter, Micros, Policy};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    /// let (login, key): (Policy, _) = ("1/min log".parse()?, Key::new("eve")?);
    /// assert!(limiter.check(&login, key).allowed());
    /// clock.advance(Micros::new(59_999_999));
    /// assert!(!limiter.check(&login, key).allowed());
    /// clock.advance(Micros::new(1));
    /// assert!(limiter.check(&login, key).allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(self, clock: ManualClock) -> Self {
        MemoryLimiterBuilder(self.0.clock(clock))
    }

    /// Remembers request ids this long; 30 s unless told otherwise.
    pub fn request_id_horizon(self, horizon: Micros) -> Self {
        MemoryLimiterBuilder(self.0.request_id_horizon(horizon))
    }

    /// The limiter.
    #[must_use]
    pub fn build(self) -> MemoryLimiter {
        MemoryLimiter::with_store(self.0.build())
    }

    /// The limiter, with what the newest snapshot of a directory holds.
    ///
    /// # Errors
    /// The directory cannot be read. A snapshot that is no good is none: see
    /// [`RestoreReport::quarantined`].
    pub fn restore(
        self,
        directory: &SnapshotDir,
    ) -> Result<(MemoryLimiter, RestoreReport), SnapshotError> {
        let (store, restored) = directory.restore(self.0)?;
        Ok((MemoryLimiter::with_store(store), restored))
    }
}

impl MemoryLimiter {
    /// A limiter for up to a million keys, by this machine's clock.
    #[must_use]
    pub fn new() -> Self {
        MemoryLimiter::default()
    }

    fn with_store(store: MemoryStore) -> Self {
        MemoryLimiter(Arc::new(Inner { store, interned: Interned::default() }))
    }

    /// A limiter to be configured.
    pub fn builder() -> MemoryLimiterBuilder {
        MemoryLimiterBuilder(MemoryStore::builder())
    }

    /// The policy of limits given as text, parsed once.
    ///
    /// # Errors
    /// The text is not limits; the error points at the word that is wrong.
    pub fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        self.0.interned.get(limits)
    }

    /// The limiter's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.store.now()
    }

    /// Decides and charges one request. On a policy with a concurrent limit it acquires: the
    /// decision then carries the lease to release.
    #[inline]
    pub fn check(&self, policy: &Policy, key: Key<'_>) -> Decision {
        self.check_cost(policy, key, Cost::ONE)
    }

    /// Decides and charges a cost; a cost of 0 is a peek.
    #[inline]
    pub fn check_cost(&self, policy: &Policy, key: Key<'_>, cost: Cost) -> Decision {
        match policy.listed(key.as_bytes()) {
            Some(listed) => Decision::of_list(listed, self.now()),
            None => self.0.store.check(policy, key, cost, random_id),
        }
    }

    /// What a check of this cost would answer; nothing changes.
    #[must_use]
    pub fn peek(&self, policy: &Policy, key: Key<'_>, cost: Cost) -> Decision {
        self.execute(Operation::Peek, policy, key, cost).unwrap_or_default()
    }

    /// Grants the lesser of `most` and what remains.
    ///
    /// # Errors
    /// `most` is 0, or the policy has a concurrent limit.
    pub fn take(
        &self,
        policy: &Policy,
        key: Key<'_>,
        most: Cost,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Take, policy, key, most)
    }

    /// Charges now what may act after the decision's delay; refused whole if that is longer than
    /// `max_wait`. The decision carries the reservation to cancel.
    ///
    /// # Errors
    /// The policy has a limit that is neither token bucket nor queue.
    pub fn reserve(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        max_wait: Micros,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Reserve { id: random_id(), max_wait }, policy, key, cost)
    }

    /// Gives a reservation back, once, before its time: its cost less what was reserved behind it.
    /// After its time, or a second time, `changed` is false.
    ///
    /// # Errors
    /// The policy has a limit that is neither token bucket nor queue.
    pub fn cancel(
        &self,
        policy: &Policy,
        key: Key<'_>,
        reservation: Id,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Cancel { id: reservation }, policy, key, Cost::ZERO)
    }

    /// Gives a cost back, never past the capacity: with the `time` of its decision, in the window
    /// of that time; without, the newest charges first.
    ///
    /// # Errors
    /// The cost is 0, or all limits of the policy are concurrent ones.
    pub fn refund(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        time: Option<Timestamp>,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Refund { time }, policy, key, cost)
    }

    /// Charges whatever the level, into a debt of at most one more capacity.
    ///
    /// # Errors
    /// The cost is 0, or all limits of the policy are concurrent ones.
    pub fn penalize(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Penalize, policy, key, cost)
    }

    /// Forgets all counters, leases and reservations of a key; its block stays.
    pub fn reset(&self, policy: &Policy, key: Key<'_>) -> Decision {
        self.execute(Operation::Reset, policy, key, Cost::ZERO).unwrap_or_default()
    }

    /// Denies every check of a key, for a time or until it is unblocked.
    pub fn block(&self, policy: &Policy, key: Key<'_>, span: Option<Micros>) -> Decision {
        self.execute(Operation::Block { span }, policy, key, Cost::ZERO).unwrap_or_default()
    }

    /// Lifts a block.
    pub fn unblock(&self, policy: &Policy, key: Key<'_>) -> Decision {
        self.execute(Operation::Unblock, policy, key, Cost::ZERO).unwrap_or_default()
    }

    /// Lets a lease that is still held last its whole length from now. If it is gone the decision
    /// says so: its `changed` is false.
    ///
    /// # Errors
    /// The policy has no concurrent limit.
    pub fn renew(
        &self,
        policy: &Policy,
        key: Key<'_>,
        lease: Id,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Renew { lease }, policy, key, Cost::ZERO)
    }

    /// Gives a lease's place back, once; `changed` is false if it is not held any more.
    ///
    /// # Errors
    /// The policy has no concurrent limit.
    pub fn release(
        &self,
        policy: &Policy,
        key: Key<'_>,
        lease: Id,
    ) -> Result<Decision, RequestError> {
        self.execute(Operation::Release { lease }, policy, key, Cost::ZERO)
    }

    /// Looks at a key: what each limit holds of it, its block, leases and reservations, and how
    /// long they last.
    #[must_use]
    pub fn inspect(&self, policy: &Policy, key: Key<'_>) -> Inspection {
        self.0.store.inspect(policy, key)
    }

    pub(crate) fn execute(
        &self,
        verb: Operation,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, RequestError> {
        let checks = [Check { policy, key: key.as_bytes(), cost }];
        let answer = self.decide(&Request { verb, checks: &checks, request_id: None })?;
        Ok(answer.decisions.into_iter().next().unwrap_or_default())
    }

    /// Decides a request of any verb, of several checks together, with or without an id.
    ///
    /// # Errors
    /// The request is not one that can be decided; see [`Request::validate`].
    ///
    /// # Example
    /// ```
    /// use tollgate::{Check, Cost, MemoryLimiter, Policy, Request, Operation};
    ///
    /// let limiter = MemoryLimiter::new();
    /// let (user, ip): (Policy, Policy) = ("10/min".parse()?, "1/min".parse()?);
    /// let checks = [
    ///     Check { policy: &user, key: b"user:42", cost: Cost::ONE },
    ///     Check { policy: &ip, key: b"10.0.0.1", cost: Cost::ONE },
    /// ];
    /// let request = Request { verb: Operation::Check { lease: None }, checks: &checks, request_id: None };
    /// assert!(limiter.decide(&request)?.allowed());
    /// // The address is spent, so nothing is charged to the user either.
    /// let denied = limiter.decide(&request)?;
    /// assert!(!denied.allowed() && denied.decisions[0].remaining == 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide(&self, request: &Request<'_>) -> Result<Answer, RequestError> {
        let listings = match lists::screen(request)? {
            Screened::Unlisted(request) => return self.0.store.decide_now(&request),
            Screened::Listed(listed) => listed,
        };
        let rest = listings.rest().map(|x| self.0.store.decide_now(&x)).transpose()?;
        Ok(listings.join(rest.map(|x| x.decisions).unwrap_or_default(), self.now()))
    }

    /// Gives memory back for keys that recovered a second ago or more: looks over at most `places` places in each
    /// shard. The table does so by itself as new keys come.
    pub fn sweep(&self, places: usize) {
        self.0.store.sweep(places);
    }

    /// Writes a snapshot to a directory, whole or not at all; blocks until it is on the disk.
    /// Decisions go on meanwhile.
    ///
    /// # Errors
    /// It cannot be written. The one before is then still there.
    pub fn save(&self, directory: &SnapshotDir) -> Result<SaveReport, SnapshotError> {
        directory.save(&self.0.store)
    }

    /// How full it is. Takes each shard's lock for a moment and looks at no key.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.store.usage()
    }

    /// How full it is, and what has happened in it. Looks at every key: not for a hot path.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        self.0.store.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deny_listed_check_denies_its_request_and_an_allow_listed_one_drops_out() {
        let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
        let listed = |policy: &str| policy.parse::<Policy>().unwrap();
        let user = listed("1/min").with_allow_list(["root"].into_iter().collect());
        let ip = listed("5/min").with_deny_list(["6.6.6.*"].into_iter().collect());
        let ask = |user_key: &[u8], ip_key: &[u8]| {
            let checks = [
                Check { policy: &user, key: user_key, cost: Cost::ONE },
                Check { policy: &ip, key: ip_key, cost: Cost::ONE },
            ];
            let verb = Operation::Check { lease: None };
            limiter.decide(&Request { verb, checks: &checks, request_id: None }).unwrap()
        };
        let denied = ask(b"bob", b"6.6.6.1");
        assert!(!denied.allowed());
        assert_eq!(denied.decisions[0].remaining, 1, "nothing is charged to the other check");
        assert_eq!(denied.decisions[1].reason, tollgate_core::Reason::DenyList);
        for left in [4, 3] {
            let allowed = ask(b"root", b"1.1.1.1");
            assert!(allowed.allowed());
            assert_eq!(allowed.decisions[0].reason, tollgate_core::Reason::AllowList);
            assert_eq!(allowed.decisions[1].remaining, left);
        }
    }
}

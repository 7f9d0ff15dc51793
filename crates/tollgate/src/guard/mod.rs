//! Permits that hold leases, charges that are settled, and callers that wait.

mod permit;
mod record;
pub mod task;
mod waiters;

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tollgate_algorithms::{
    Check, Cost, Denied, Id, Limit, LimitDecision, Operation, Outcome, Policy, Reason, Request,
    RequestError,
};
use tollgate_state::{Answer, AsKey, KeyBuf, StoreError};

use crate::id::random_id;
use crate::limiter::Limiter;
use permit::Undelivered;
pub use permit::{Charge, Permit};
use record::{OwnedCheck, Record};
pub(crate) use waiters::Waiters;

/// A slot of a concurrency limit may become free at any time, so the first caller that waits for one
/// checks again after this time, and then after twice the time.
const MIN_POLL: Duration = Duration::from_millis(5);
const MAX_POLL: Duration = Duration::from_millis(250);

/// Why several checks are not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// A limit denies.
    Denied(Denied),
    /// There is no check or more than 32, or a key is empty or too long.
    Invalid(RequestError),
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcquireError::Denied(denied) => denied.fmt(f),
            AcquireError::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AcquireError {}

/// Permits, charges and waiting. These methods need a tokio runtime, and the feature `tokio`, which `redis`
/// includes.
///
/// Each of their futures can be dropped at any time: if the store admits the request nevertheless, the
/// charge is refunded and the lease released.
impl Limiter {
    /// Checks and charges a cost of 1, and holds the lease of a concurrent limit until the permit is
    /// dropped. Does not wait: a request that would have to wait in a queue is denied.
    ///
    /// # Errors
    /// Returns the denial.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tollgate::{Limiter, Policy};
    ///
    /// let limiter = Limiter::memory();
    /// let reports = Policy::named("reports", "1 concurrent lease 60s")?;
    /// let permit = limiter.acquire(&reports, "acme").await?;
    /// assert!(limiter.acquire(&reports, "acme").await.is_err());
    /// drop(permit);
    /// assert!(limiter.acquire(&reports, "acme").await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn acquire(&self, policy: &Policy, key: impl AsKey) -> Result<Permit, Denied> {
        let check = OwnedCheck { policy: policy.clone(), key: KeyBuf::from(&key), cost: Cost::ONE };
        self.admit_at_once(vec![check], None).await.map_err(valid)
    }

    /// Decides several checks together, like [`check_all`](Self::check_all), and holds the leases of
    /// all: for example, a request, its tokens and its slot among the requests in flight.
    ///
    /// # Errors
    /// Returns the denial, or why the checks are invalid.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tollgate::{Check, Cost, Limiter, Policy};
    ///
    /// let limiter = Limiter::memory();
    /// let requests = Policy::named("requests", "60/min")?;
    /// let tokens = Policy::named("tokens", "10000/d")?;
    /// let in_flight = Policy::named("in-flight", "4 concurrent lease 60s")?;
    /// let permit = limiter
    ///     .acquire_all(&[
    ///         Check::new(&requests, "acme"),
    ///         Check::new(&tokens, "acme").with_cost(Cost::from(2_000)),
    ///         Check::new(&in_flight, "acme"),
    ///     ])
    ///     .await?;
    /// // The answer took 1,234 tokens.
    /// permit.settle(&tokens, Cost::from(1_234)).await?;
    /// assert_eq!(limiter.peek(&tokens, "acme", Cost::ONE).await.remaining, 8_766);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn acquire_all(&self, checks: &[Check<'_>]) -> Result<Permit, AcquireError> {
        let operation = Operation::Check { lease: None };
        // Validated first, because an owned key is always valid.
        Request { operation, checks, request_id: None }
            .validate()
            .map_err(AcquireError::Invalid)?;
        let checks = checks.iter().map(OwnedCheck::new).collect();
        self.admit_at_once(checks, Some(random_id())).await
    }

    /// Charges an estimate, which [`Charge::settle`] replaces by the actual cost.
    ///
    /// # Errors
    /// Returns the denial.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tollgate::{Cost, Limiter, Policy};
    ///
    /// let limiter = Limiter::memory();
    /// let tokens = Policy::named("tokens", "10000/d fixed")?;
    /// let charge = limiter.charge(&tokens, "acme", Cost::from(2_000)).await?;
    /// charge.settle(Cost::from(1_234)).await?;
    /// assert_eq!(limiter.peek(&tokens, "acme", Cost::ONE).await.remaining, 8_766);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn charge(
        &self,
        policy: &Policy,
        key: impl AsKey,
        estimate: Cost,
    ) -> Result<Charge, Denied> {
        let check = OwnedCheck { policy: policy.clone(), key: KeyBuf::from(&key), cost: estimate };
        self.admit_at_once(vec![check], Some(random_id())).await.map(Charge).map_err(valid)
    }

    /// Waits until a cost is admitted, at most `within`; also in the queue of a policy such as
    /// `20/s queue 100`. Holds the lease of a concurrent limit until the permit is dropped.
    ///
    /// Callers in this process that wait for the same policy and key are admitted in their order, and
    /// only the first of them checks. The future can be dropped at any time: nothing is charged then.
    ///
    /// # Errors
    /// Returns a denial that does not end by waiting at once, and one that does not end within the time
    /// as soon as that is known.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tollgate::{Cost, Limiter, Policy};
    ///
    /// let limiter = Limiter::memory();
    /// let sms = Policy::named("sms", "100/s burst 1")?;
    /// for _ in 0..3 {
    ///     limiter.until_allowed(&sms, "gateway", Cost::ONE, Duration::from_secs(1)).await?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn until_allowed(
        &self,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
        within: Duration,
    ) -> Result<Permit, Denied> {
        let check = OwnedCheck { policy: policy.clone(), key: KeyBuf::from(&key), cost };
        // A runtime has no later time.
        let deadline = Instant::now() + within.min(Duration::from_secs(86_400 * 365));
        let ticket = self.waiters().enter(policy, &check.key);
        let Ok(turn) = timeout_at(deadline, ticket.queue.turn.lock()).await else {
            let last_denial = *ticket.queue.last_denial();
            return Err(last_denial.unwrap_or(Denied::RetryAfter(Duration::ZERO)));
        };
        let mut poll = MIN_POLL;
        loop {
            let admission = self.admit(vec![check.clone()], None, Purpose::Wait).await;
            let (reason, answer) = match admission.map_err(valid)? {
                Admission::Admitted(permit, delay) => {
                    let remaining = deadline.saturating_duration_since(Instant::now());
                    if let Some(too_long) = delay.checked_sub(remaining).filter(|x| !x.is_zero()) {
                        return Err(Denied::RetryAfter(too_long));
                    }
                    // The next caller enters the queue of the policy behind this one.
                    drop(turn);
                    if !delay.is_zero() {
                        sleep(delay).await;
                    }
                    return Ok(permit.deliver());
                }
                Admission::Denied(reason, answer) => (reason, answer),
            };
            *ticket.queue.last_denial() = Some(reason);
            let Denied::RetryAfter(mut wait) = reason else { return Err(reason) };
            let remaining = deadline.saturating_duration_since(Instant::now());
            if is_by_concurrency(policy, &answer, remaining) {
                wait = wait.min(poll).min(remaining);
                poll = (poll * 2).min(MAX_POLL);
            } else if wait > remaining {
                return Err(reason);
            }
            sleep(wait).await;
        }
    }

    /// As [`admit`](Self::admit), but an admission with a delay is undone.
    async fn admit_at_once(
        &self,
        checks: Vec<OwnedCheck>,
        request_id: Option<Id>,
    ) -> Result<Permit, AcquireError> {
        match self.admit(checks, request_id, Purpose::Decide).await? {
            Admission::Admitted(permit, Duration::ZERO) => Ok(permit.deliver()),
            Admission::Admitted(_, delay) => Err(AcquireError::Denied(Denied::RetryAfter(delay))),
            Admission::Denied(denied, _) => Err(AcquireError::Denied(denied)),
        }
    }

    /// Checks and charges. The check is completed although the future is dropped, and then undone.
    async fn admit(
        &self,
        checks: Vec<OwnedCheck>,
        request_id: Option<Id>,
        purpose: Purpose,
    ) -> Result<Admission, AcquireError> {
        let limiter = self.clone();
        task::Completed::new(async move {
            let answer = {
                let checks: Vec<_> = checks.iter().map(OwnedCheck::borrow).collect();
                let id = request_id.map(|id| id.to_string());
                let request_id = id.as_deref().map(str::as_bytes);
                let operation = Operation::Check { lease: None };
                let counts_denials = checks.iter().any(|check| check.policy.counts_denials());
                if counts_denials && purpose == Purpose::Wait {
                    // The caller is not denied: it waits.
                    let operation = Operation::Peek;
                    let peek = Request { operation, checks: &checks, request_id: None };
                    let peeked = decided(limiter.decide(&peek).await)?;
                    if let Outcome::Denied(denied) = peeked.outcome() {
                        return Ok(Admission::Denied(denied, peeked));
                    }
                }
                decided(limiter.decide(&Request { operation, checks: &checks, request_id }).await)?
            };
            let delay = match answer.outcome() {
                Outcome::Allowed { delay } => delay,
                Outcome::Denied(denied) => return Ok(Admission::Denied(denied, answer)),
            };
            let permit = Permit::new(Record::new(limiter, checks, answer, request_id));
            Ok(Admission::Admitted(Undelivered::new(permit), delay))
        })
        .await
    }
}

/// Why a check is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A denial is the answer to the caller.
    Decide,
    /// The caller waits after a denial, so that it does not count as one.
    Wait,
}

/// The result of a check.
enum Admission {
    /// The request may proceed after this delay.
    Admitted(Undelivered, Duration),
    Denied(Denied, Answer),
}

/// Returns the answer to a check. If the store fails, it is that of the policies, so only an invalid
/// request is an error.
fn decided(result: Result<Answer, StoreError>) -> Result<Answer, AcquireError> {
    match result {
        Ok(answer) => Ok(answer),
        Err(StoreError::Request(error)) => Err(AcquireError::Invalid(error)),
        Err(error) => unreachable!("a policy decides if the store fails: {error}"),
    }
}

/// The denial of a request that is valid.
fn valid(error: AcquireError) -> Denied {
    match error {
        AcquireError::Denied(denied) => denied,
        AcquireError::Invalid(error) => unreachable!("one check of an owned key: {error}"),
    }
}

/// Whether concurrency limits alone deny for longer than `remaining`, or at all: one of their slots may
/// become free before a lease ends.
fn is_by_concurrency(policy: &Policy, answer: &Answer, remaining: Duration) -> bool {
    let Some(decision) = answer.decisions.first().filter(|_| !remaining.is_zero()) else {
        return false;
    };
    let mut limits = policy.limits().iter().zip(decision.each_limit());
    let denies_too_long = |(limit, decision): (&Limit, LimitDecision)| {
        !limit.is_concurrent() && decision.retry_after > Some(remaining.into())
    };
    let has_slot =
        limits.clone().all(|(limit, decision)| !limit.is_concurrent() || decision.allowed);
    decision.reason == Reason::Limit && !has_slot && !limits.any(denies_too_long)
}

//! Allow and deny lists, which decide before the store does.

use tollgate_algorithms::{Check, Decision, Listed, Operation, Request, RequestError, Timestamp};
use tollgate_state::{Answer, Clock, StoreError};

use crate::id::random_id;

/// A request after its keys were looked up in the lists. A check that needs a lease and has none
/// was given a new one.
#[derive(Debug)]
pub(crate) enum Screening<'a> {
    /// No key is on a list: the store decides the request as it is.
    Unlisted(Request<'a>),
    /// Some keys are on a list; the store decides the other checks.
    Listed(ListedRequest<'a>),
}

/// A request with at least one key on a list.
#[derive(Debug)]
pub(crate) struct ListedRequest<'a> {
    request: Request<'a>,
    /// For each check, the list that its key is on.
    listed: Vec<Option<Listed>>,
    /// The checks whose key is on no list.
    unlisted: Vec<Check<'a>>,
}

/// Looks a request's keys up in the lists of its policies.
pub(crate) fn screen<'a>(request: &Request<'a>) -> Result<Screening<'a>, RequestError> {
    let is_concurrent = request.checks.iter().any(|check| check.policy.has_concurrent());
    let operation = match request.operation {
        Operation::Check { lease: None } if is_concurrent => {
            Operation::Check { lease: Some(random_id()) }
        }
        operation => operation,
    };
    let request = Request { operation, ..*request };
    let listed = |check: &Check<'_>| {
        let listed = check.policy.listed(check.key)?;
        // A key on the deny list was charged before it was added to the list.
        let was_charged = listed == Listed::Deny && !check.policy.is_shadow();
        (operation != Operation::Settle || !was_charged).then_some(listed)
    };
    let has_lists = operation.decides() || operation == Operation::Settle;
    if !has_lists || request.checks.iter().all(|check| listed(check).is_none()) {
        return Ok(Screening::Unlisted(request));
    }
    request.validate()?;
    Ok(Screening::Listed(ListedRequest {
        request,
        listed: request.checks.iter().map(listed).collect(),
        unlisted: request.checks.iter().filter(|check| listed(check).is_none()).copied().collect(),
    }))
}

impl<'a> Screening<'a> {
    /// Returns the whole request.
    #[cfg(feature = "tracing")]
    fn request(&self) -> &Request<'a> {
        match self {
            Screening::Unlisted(request) => request,
            Screening::Listed(listed) => &listed.request,
        }
    }

    /// Returns the request for the store, if it has anything to decide.
    pub(crate) fn store_request(&self) -> Option<Request<'_>> {
        match self {
            Screening::Unlisted(request) => Some(*request),
            Screening::Listed(listed) => listed.store_request(),
        }
    }
}

/// Independent requests after their keys were looked up in the lists.
#[derive(Debug)]
pub(crate) struct ScreenedBatch<'a>(Vec<Result<Screening<'a>, RequestError>>);

impl<'a> ScreenedBatch<'a> {
    pub(crate) fn new(requests: &[Request<'a>]) -> Self {
        ScreenedBatch(requests.iter().map(screen).collect())
    }

    /// Returns the requests for the store.
    pub(crate) fn store_requests(&self) -> Vec<Request<'_>> {
        self.0.iter().flatten().filter_map(Screening::store_request).collect()
    }

    /// Combines the answers to the requests for the store with the decisions of the lists.
    pub(crate) fn merge(
        &self,
        stored: Vec<Result<Answer, StoreError>>,
        clock: &Clock,
    ) -> Vec<Result<Answer, StoreError>> {
        let mut stored = stored.into_iter();
        let mut next = || {
            #[expect(clippy::expect_used, reason = "a store answers every request")]
            stored.next().expect("one answer per request")
        };
        let merge = |screening: &Result<Screening<'_>, RequestError>| match screening {
            Err(error) => Err(StoreError::Request(*error)),
            Ok(Screening::Unlisted(_)) => next(),
            Ok(Screening::Listed(listed)) => {
                let stored = match listed.store_request() {
                    Some(_) => next()?.decisions,
                    None => Vec::new(),
                };
                Ok(listed.merge(stored, clock.now()))
            }
        };
        let answers: Vec<_> = self.0.iter().map(merge).collect();
        #[cfg(feature = "tracing")]
        for (screening, answer) in self.0.iter().zip(&answers) {
            if let (Ok(screening), Ok(answer)) = (screening, answer) {
                crate::events::record_answer(screening.request(), answer);
            }
        }
        answers
    }
}

impl ListedRequest<'_> {
    /// Returns the request for the store: the checks whose key is on no list.
    pub(crate) fn store_request(&self) -> Option<Request<'_>> {
        if self.unlisted.is_empty() {
            return None;
        }
        let mut checks = self.request.checks.iter().zip(&self.listed);
        let is_denied = checks
            .any(|(check, listed)| *listed == Some(Listed::Deny) && !check.policy.is_shadow());
        // A denied request charges nothing, so the other checks are only peeked at.
        let operation = if is_denied { Operation::Peek } else { self.request.operation };
        Some(Request { operation, checks: &self.unlisted, ..self.request })
    }

    /// Combines the store's decisions for the unlisted checks with those of the lists.
    pub(crate) fn merge(&self, decisions: Vec<Decision>, now: Timestamp) -> Answer {
        assert_eq!(decisions.len(), self.unlisted.len(), "the store decides each unlisted check");
        let mut decisions = decisions.into_iter();
        let mut merged = Vec::with_capacity(self.request.checks.len());
        for (check, listed) in self.request.checks.iter().zip(&self.listed) {
            match listed {
                Some(Listed::Deny) if check.policy.is_shadow() => {
                    merged.push(Decision::from_list(Listed::Allow, now));
                }
                Some(listed) => merged.push(Decision::from_list(*listed, now)),
                None => merged.extend(decisions.next()),
            }
        }
        Answer { decisions: merged }
    }
}

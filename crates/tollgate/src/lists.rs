//! Allow and deny lists, which answer before any store is asked.

use tollgate_core::{Check, Decision, Listed, Operation, Request, RequestError, Timestamp};
use tollgate_store::Answer;

use crate::id::random_id;

/// A request on which the lists have spoken. A check that needs a lease and has none has got one.
#[derive(Debug)]
pub(crate) enum Screened<'a> {
    /// None of its keys is on a list: the store decides it as it is.
    Unlisted(Request<'a>),
    /// Some are, and the store decides the rest.
    Listed(Listings<'a>),
}

/// A request of which some keys are on a list.
#[derive(Debug)]
pub(crate) struct Listings<'a> {
    request: Request<'a>,
    /// For each check, what the lists say of its key.
    listed: Vec<Option<Listed>>,
    /// The checks that are on none.
    rest: Vec<Check<'a>>,
}

/// Looks a request's keys up in the lists.
pub(crate) fn screen<'a>(request: &Request<'a>) -> Result<Screened<'a>, RequestError> {
    let concurrent = request.checks.iter().any(|check| check.policy.has_concurrent());
    let verb = match request.verb {
        Operation::Check { lease: None } if concurrent => {
            Operation::Check { lease: Some(random_id()) }
        }
        verb => verb,
    };
    let request = Request { verb, ..*request };
    let listed = |check: &Check<'_>| check.policy.listed(check.key);
    if !verb.decides() || request.checks.iter().all(|check| listed(check).is_none()) {
        return Ok(Screened::Unlisted(request));
    }
    request.validate()?;
    Ok(Screened::Listed(Listings {
        request,
        listed: request.checks.iter().map(listed).collect(),
        rest: request.checks.iter().filter(|check| listed(check).is_none()).copied().collect(),
    }))
}

impl Screened<'_> {
    /// What the store decides of it, if anything.
    #[cfg(feature = "redis")]
    pub(crate) fn asked(&self) -> Option<Request<'_>> {
        match self {
            Screened::Unlisted(request) => Some(*request),
            Screened::Listed(listings) => listings.rest(),
        }
    }
}

impl Listings<'_> {
    /// What is left for the store to decide.
    pub(crate) fn rest(&self) -> Option<Request<'_>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut checks = self.request.checks.iter().zip(&self.listed);
        let denied = checks
            .any(|(check, listed)| *listed == Some(Listed::Deny) && !check.policy.is_shadow());
        // A denied request charges nothing: the other checks only say what they would.
        let verb = if denied { Operation::Peek } else { self.request.verb };
        Some(Request { verb, checks: &self.rest, ..self.request })
    }

    /// The whole answer, with what the store decided of the rest.
    pub(crate) fn join(&self, decided: Vec<Decision>, now: Timestamp) -> Answer {
        let mut decided = decided.into_iter();
        let answer = |(check, listed): (&Check<'_>, &Option<Listed>)| match listed {
            Some(Listed::Deny) if check.policy.is_shadow() => Decision::of_list(Listed::Allow, now),
            Some(listed) => Decision::of_list(*listed, now),
            None => decided.next().unwrap_or_default(),
        };
        Answer { decisions: self.request.checks.iter().zip(&self.listed).map(answer).collect() }
    }
}

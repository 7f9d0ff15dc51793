//! Calls and their outcomes: the interface between a protocol and the engine.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tollgate::{Answer, Check, Cost, Decision, Inspection, Operation, Policy, StoreError};
use tollgate_algorithms::MAX_REQUEST_ID_LEN;
use tollgate_insight::MAX_NOTE_BYTES;

use crate::access::Principal;
use crate::audit::AuditRecord;
use crate::error::{Error, ErrorValue};
use crate::meter::CountedCheck;
use crate::operation::Action;
use crate::parameter::Parameter;

/// How a request selects its policy: by name with an optional tier, or by inline limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicySelector<'s> {
    /// The name of a configured policy.
    pub policy: Option<&'s str>,
    /// A tier of that policy; without one, or with one that the policy does not have, its limits
    /// without a tier.
    pub tier: Option<&'s str>,
    /// Inline limits.
    pub limit: Option<&'s str>,
}

/// One check: the policy variant that applies to the key, the key and the cost.
#[derive(Clone, Debug)]
pub struct CheckRequest<'a> {
    /// The policy that applies to the key.
    pub policy: Cow<'a, Policy>,
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// The cost.
    pub cost: Cost,
    /// A hint for the answer, if the request has a tier that the policy does not have.
    pub hint: Option<Box<str>>,
    /// A comment, which a policy with `track` records.
    pub note: Option<Cow<'a, str>>,
}

impl<'a> CheckRequest<'a> {
    /// A check without a hint.
    #[inline]
    #[must_use]
    pub fn new(policy: Cow<'a, Policy>, key: Cow<'a, [u8]>, cost: Cost) -> Self {
        CheckRequest { policy, key, cost, hint: None, note: None }
    }

    /// Sets the note, whose length is bounded.
    ///
    /// # Errors
    /// It is too long.
    pub fn with_note(mut self, note: Option<Cow<'a, str>>) -> Result<Self, Error> {
        if let Some(note) = &note
            && note.len() > MAX_NOTE_BYTES
        {
            let detail = format!(
                "note has {} bytes, more than the maximum of {MAX_NOTE_BYTES}; shorten it",
                note.len()
            );
            return Err(Error::bad_request(detail).with_parameter(Parameter::Note));
        }
        self.note = note;
        Ok(self)
    }

    /// Sets a note that the client's gateway has formed from a request. It is shortened to its
    /// maximum length, because no value of a request may prevent a decision.
    #[must_use]
    pub fn with_shortened_note(mut self, note: Option<&[u8]>) -> Self {
        self.note = note.map(|note| {
            let mut note = String::from_utf8_lossy(note);
            if note.len() > MAX_NOTE_BYTES {
                let is_end = |end: &usize| note.is_char_boundary(*end);
                let end = (0..=MAX_NOTE_BYTES).rev().find(is_end).unwrap_or(0);
                note.to_mut().truncate(end);
            }
            Cow::Owned(note.into_owned())
        });
        self
    }

    /// The check as the store takes it.
    pub(crate) fn as_check(&self) -> Check<'_> {
        Check { policy: &self.policy, key: &self.key, cost: self.cost }
    }

    /// Copies the key. The policy is shared.
    #[must_use]
    pub fn into_owned(self) -> CheckRequest<'static> {
        CheckRequest {
            policy: Cow::Owned(self.policy.into_owned()),
            key: Cow::Owned(self.key.into_owned()),
            cost: self.cost,
            hint: self.hint,
            note: self.note.map(|note| Cow::Owned(note.into_owned())),
        }
    }
}

/// The checks of a call. Several are executed together: all are charged, or none is.
#[derive(Clone, Debug)]
pub enum Checks<'a> {
    /// One check, answered by one decision.
    One(CheckRequest<'a>),
    /// A list, answered by a list even if it has one element.
    Several(Vec<CheckRequest<'a>>),
}

impl<'a> Checks<'a> {
    /// The checks in order.
    #[must_use]
    pub fn as_slice(&self) -> &[CheckRequest<'a>] {
        match self {
            Checks::One(check) => std::slice::from_ref(check),
            Checks::Several(checks) => checks,
        }
    }

    /// The policies in the order of the checks.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> + Clone {
        self.as_slice().iter().map(|check| &*check.policy)
    }

    /// Copies the keys.
    #[must_use]
    pub fn into_owned(self) -> Checks<'static> {
        match self {
            Checks::One(check) => Checks::One(check.into_owned()),
            Checks::Several(checks) => {
                Checks::Several(checks.into_iter().map(CheckRequest::into_owned).collect())
            }
        }
    }
}

/// The idempotency key of a request.
#[derive(Clone, Debug)]
pub struct RequestId<'a>(Cow<'a, [u8]>);

impl<'a> RequestId<'a> {
    /// Validates an id.
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn new(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        if (1..=MAX_REQUEST_ID_LEN).contains(&bytes.len()) {
            return Ok(RequestId(bytes));
        }
        let detail = format!(
            "the request id has {} bytes; it must have 1 to {MAX_REQUEST_ID_LEN}",
            bytes.len()
        );
        Err(Error::bad_request(detail)
            .with_parameter(Parameter::RequestId)
            .with_value(ErrorValue::Text(String::from_utf8_lossy(&bytes).into_owned())))
    }

    /// The id in the name space of a client and of policies: another client, or a request under
    /// other policies, may use the same id without seeing the answer.
    fn scoped(&self, principal: Principal<'_>, checks: &Checks<'_>) -> RequestId<'static> {
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            // The length prevents that two sequences of parts have the same bytes.
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        };
        match principal.token_name() {
            Some(name) => add(name.as_bytes()),
            // A token has a name.
            None => add(b""),
        }
        checks.policies().for_each(|policy| add(policy.name().as_bytes()));
        add(&self.0);
        RequestId(Cow::Owned(digest.finalize().to_vec()))
    }

    /// Copies the bytes.
    #[must_use]
    pub fn into_owned(self) -> RequestId<'static> {
        RequestId(Cow::Owned(self.0.into_owned()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whether and how the decisions of a call are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Each decision by its answer.
    Answer,
    /// Each decision as `never`: the protocol charges a cost above the capacity, and denies it.
    Never,
    /// Not at all: nothing was decided.
    Nothing,
}

/// One request to the store, ready to be executed. It borrows its arguments for `'a`, and the
/// principal and the remote of its audit record for `'r`.
#[derive(Debug)]
pub struct Call<'a, 'r> {
    /// Its action.
    pub action: Action,
    /// Its policies, keys and costs.
    pub checks: Checks<'a>,
    /// Its idempotency key.
    request_id: Option<RequestId<'a>>,
    /// How its decisions are counted.
    counting: Counting,
    /// Whether the client is admitted although a check denies.
    is_shadow: bool,
    /// Whether a decision without the store is an error.
    requires_store: bool,
    /// Its audit records, each with the index of its check; they end with the execution.
    audits: Vec<(usize, AuditRecord<'r>)>,
}

impl<'a, 'r> Call<'a, 'r> {
    /// A call without an idempotency key or an audit record.
    #[must_use]
    pub fn new(action: Action, checks: Checks<'a>) -> Self {
        let counting = match action {
            Action::Execute(operation) if operation.decides() && operation != Operation::Peek => {
                Counting::Answer
            }
            Action::Execute(_) | Action::Inspect => Counting::Nothing,
        };
        let (request_id, is_shadow, requires_store, audits) = (None, false, false, Vec::new());
        Call { action, checks, request_id, counting, is_shadow, requires_store, audits }
    }

    /// Sets the idempotency key of this client.
    #[must_use]
    pub fn with_request_id(self, id: Option<&RequestId<'_>>, principal: Principal<'_>) -> Self {
        let request_id = id.map(|id| id.scoped(principal, &self.checks));
        Call { request_id, ..self }
    }

    /// Sets how the decisions are counted. By default those of operations that charge are.
    #[must_use]
    pub fn with_counting(self, counting: Counting) -> Self {
        Call { counting, ..self }
    }

    /// Sets whether the protocol admits the client whatever the checks decide: denials then count as
    /// `shadow_denied`, and are not logged.
    #[must_use]
    pub fn with_shadow(self, is_shadow: bool) -> Self {
        Call { is_shadow, ..self }
    }

    /// Sets whether the call fails while the store is unavailable, whatever its policies decide
    /// then. By default they decide.
    #[must_use]
    pub fn with_store_required(self, requires_store: bool) -> Self {
        Call { requires_store, ..self }
    }

    /// The check of a call that charges only this check, and has neither an audit record nor an
    /// idempotency key.
    pub(crate) fn plain_check(&self) -> Option<&CheckRequest<'a>> {
        let is_plain = self.action == Action::Execute(Operation::Check { lease: None })
            && self.counting == Counting::Answer
            && !self.is_shadow
            && self.request_id.is_none()
            && self.audits.is_empty();
        match &self.checks {
            Checks::One(check) if is_plain => Some(check),
            Checks::One(_) | Checks::Several(_) => None,
        }
    }

    /// Whether the outcome is a decision without the store, which the call does not accept.
    pub(crate) fn lacks_store(&self, outcome: &Outcome) -> bool {
        self.requires_store && outcome.is_degraded()
    }

    /// The error that the client gets for the whole request if this call fails.
    pub(crate) fn request_error<'c>(
        &self,
        result: &'c Result<Outcome, StoreError>,
    ) -> Option<&'c StoreError> {
        result.as_ref().err().filter(|error| self.requires_store && error.failure().is_some())
    }

    /// The idempotency key as the store takes it.
    pub(crate) fn request_id(&self) -> Option<&[u8]> {
        self.request_id.as_ref().map(RequestId::as_bytes)
    }

    /// Attaches the audit record of an operator's request, and notes the arguments in it.
    ///
    /// # Panics
    /// The call is an inspection.
    #[must_use]
    pub fn with_audit(self, audit: AuditRecord<'r>) -> Self {
        self.with_audit_of(0, audit)
    }

    /// Attaches the audit record of one of the checks, and notes its arguments in it.
    ///
    /// # Panics
    /// The call is an inspection, or there is no such check.
    #[must_use]
    pub fn with_audit_of(mut self, index: usize, mut audit: AuditRecord<'r>) -> Self {
        let (Action::Execute(operation), Some(check)) =
            (self.action, self.checks.as_slice().get(index))
        else {
            unreachable!("operators' requests execute an operation on a check");
        };
        audit.set_arguments(operation, check);
        self.audits.push((index, audit));
        self
    }

    /// Copies the arguments.
    #[must_use]
    pub fn into_owned(self) -> Call<'static, 'r> {
        Call {
            action: self.action,
            checks: self.checks.into_owned(),
            request_id: self.request_id.map(RequestId::into_owned),
            counting: self.counting,
            is_shadow: self.is_shadow,
            requires_store: self.requires_store,
            audits: self.audits,
        }
    }

    /// Ends the audit record, and maps the store's error.
    pub(crate) fn end(&mut self, result: Result<Outcome, StoreError>) -> Result<Outcome, Error> {
        let result = result.map_err(|error| match &self.checks {
            Checks::One(check) => Error::from(error).with_policy(&check.policy),
            Checks::Several(_) => error.into(),
        });
        for (index, audit) in self.audits.drain(..) {
            match &result {
                Ok(outcome) => audit.complete(outcome.decision(index)),
                Err(error) => audit.fail_with(error),
            }
        }
        result
    }

    /// The decisions to count, with the policies of the checks. `request_error` is the error of
    /// another call for which the client gets none of these decisions.
    pub(crate) fn counted<'c>(
        &'c self,
        result: &'c Result<Outcome, StoreError>,
        request_error: Option<&'c StoreError>,
    ) -> impl Iterator<Item = CountedCheck<'c>> {
        let (counting, is_shadow) = (self.counting, self.is_shadow);
        let checks = match counting {
            Counting::Nothing => &[],
            Counting::Answer | Counting::Never => self.checks.as_slice(),
        };
        checks.iter().enumerate().map(move |(index, check)| {
            let result = match (result, request_error) {
                (Ok(_), Some(error)) => Err(error),
                (result, _) => result.as_ref(),
            };
            let decision = result.map(|outcome| {
                let decision = outcome.decision(index);
                match counting {
                    Counting::Never => Cow::Owned(denied_as_never(decision)),
                    Counting::Answer | Counting::Nothing => Cow::Borrowed(decision),
                }
            });
            CountedCheck { check, is_shadow, result: decision }
        })
    }
}

fn denied_as_never(decision: &Decision) -> Decision {
    let mut decision = decision.clone();
    (decision.allowed, decision.never) = (false, true);
    decision
}

/// The result of a call.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The decision of [`Checks::One`].
    Decision(Decision),
    /// The decisions of [`Checks::Several`].
    Decisions(Answer),
    /// The state of a key.
    Inspection(Inspection),
}

impl Outcome {
    /// The decision of a check.
    ///
    /// # Panics
    /// There are fewer decisions than checks, or the key was inspected.
    #[expect(clippy::expect_used, reason = "stores return one decision per check")]
    pub fn decision(&self, index: usize) -> &Decision {
        let decisions = match self {
            Outcome::Decision(decision) => std::slice::from_ref(decision),
            Outcome::Decisions(answer) => &answer.decisions,
            Outcome::Inspection(_) => unreachable!("an inspection decides nothing"),
        };
        decisions.get(index).expect("one decision per check")
    }

    /// Whether the store had no part in a decision.
    fn is_degraded(&self) -> bool {
        match self {
            Outcome::Decision(decision) => decision.degraded,
            Outcome::Decisions(answer) => answer.decisions.iter().any(|decision| decision.degraded),
            Outcome::Inspection(_) => false,
        }
    }

    /// The outcome of checks with this answer.
    pub(crate) fn new(checks: &Checks<'_>, answer: Answer) -> Self {
        if let Checks::Several(_) = checks {
            return Outcome::Decisions(answer);
        }
        let mut decisions = answer.decisions.into_iter();
        match (decisions.next(), decisions.next()) {
            (Some(decision), None) => Outcome::Decision(decision),
            _ => unreachable!("the store returned other than one decision for one check"),
        }
    }
}

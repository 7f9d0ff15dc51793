//! The verbs as they are spoken: a file for each, all of one shape.

mod acquire;
mod block;
mod cancel;
mod check;
mod inspect;
mod peek;
mod penalize;
mod refund;
mod release;
mod renew;
mod reserve;
mod reset;
mod take;
mod unblock;

use std::borrow::Cow;

use tollgate::{Decision, Id, Operation, Request, StoreError, random_id};
use tollgate_core::MAX_REQUEST_ID_LEN;

use super::asked::Asked;
use super::exchange::Exchange;
use super::field::Field;
use super::headers;
use super::json::{self, Shape};
use super::object::Object;
use super::problem::{MAX_SHOWN, Problem};
use super::reply::{self, Reply, Verdict};
use super::written::Written;
use crate::audit::Subject;
use crate::config::Scope;
use crate::daemon::Daemon;
use crate::metrics::Surface;

/// A verb as it is spoken.
#[derive(Debug)]
pub(super) struct Spoken {
    /// Its name: `POST /v1/<name>`.
    pub(super) name: &'static str,
    /// What it does, in a sentence.
    pub(super) about: &'static str,
    /// The fields of its body.
    pub(super) fields: &'static [Field],
    /// Whether it may also be asked by `GET`, with a query.
    pub(super) by_query: bool,
    /// The fields of its query, then.
    pub(super) fields_of_query: &'static [Field],
    /// Its own fields that must be there.
    pub(super) needs: &'static [Field],
    /// The scopes each of which is enough to ask it.
    pub(super) scopes: &'static [Scope],
    /// What its answer is.
    pub(super) answers: Answers,
    /// Takes its own fields; what it asks of the store.
    verb: fn(&mut Object<'_>) -> Result<Operation, Problem>,
}

/// What the answer to a verb is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// A decision, which the status tells too.
    Verdict,
    /// A decision that was only looked at.
    Decision,
    /// What was done.
    Change,
    /// What is kept of the key.
    Inspection,
}

/// All of them.
pub(super) static SPOKEN: [Spoken; 14] = [
    check::CHECK,
    peek::PEEK,
    take::TAKE,
    reserve::RESERVE,
    cancel::CANCEL,
    refund::REFUND,
    penalize::PENALIZE,
    reset::RESET,
    block::BLOCK,
    unblock::UNBLOCK,
    acquire::ACQUIRE,
    renew::RENEW,
    release::RELEASE,
    inspect::INSPECT,
];

pub(super) fn of_name(name: &str) -> Option<&'static Spoken> {
    SPOKEN.iter().find(|x| x.name == name)
}

/// The fields of each check in `checks`.
pub(super) const FIELDS_OF_CHECK: &[Field] = &[
    Field::Policy,
    Field::Tier,
    Field::Limit,
    Field::Key,
    Field::KeyBase64,
    Field::Cost,
    Field::Note,
];

/// Answers a verb.
pub(super) async fn answer(
    spoken: &Spoken,
    mut object: Object<'_>,
    exchange: &Exchange<'_>,
    told_by_status: bool,
) -> Result<Reply, Problem> {
    tell_subject(&object, exchange);
    let verb = (spoken.verb)(&mut object)?;
    let request_id = request_id(&mut object)?;
    if let Some(checks) = object.take(Field::Checks) {
        let asked = asked_together(&object, &checks, exchange)?;
        return answer_several(
            spoken,
            verb,
            &asked,
            request_id.as_deref(),
            exchange,
            told_by_status,
        )
        .await;
    }
    let asked = Asked::take(&mut object, exchange)?;
    let daemon = exchange.daemon;
    if spoken.answers == Answers::Inspection {
        let key = asked.key().map_err(Problem::from)?;
        let inspection = daemon.limiter().inspect(asked.policy(), key).await?;
        return Ok(reply::json(json::inspection(asked.policy(), &inspection), None));
    }
    if let Some(record) = exchange.record {
        record.asks(&verb, asked.cost().get());
    }
    let timed = exchange.timed(Surface::Http);
    let decided = decide(verb, &asked, request_id.as_deref(), daemon).await;
    if spoken.has_verdict() {
        match &decided {
            Ok(decision) => timed.decided([(asked.policy(), decision)]),
            Err(error) => timed.refused([asked.policy()], error),
        }
    }
    let decision = decided.map_err(|error| Problem::from(error).with_policy(asked.policy()))?;
    if let Some(record) = exchange.record {
        record.is_decided(&decision);
    }
    let verdict = Verdict::of(&decision);
    let body = json::decision(asked.policy(), &decision, spoken.shape());
    let told = Some(verdict).filter(|_| told_by_status && spoken.has_verdict());
    let mut reply = reply::json(body, told);
    if spoken.decides() {
        let decision = std::iter::once((asked.policy(), &decision));
        headers::write(&exchange.live.headers, reply.headers_mut(), decision);
    }
    Ok(reply)
}

/// Tells the audit, if it wants to know, which policy and key a request names.
pub(super) fn tell_subject(object: &Object<'_>, exchange: &Exchange<'_>) {
    let Some(record) = exchange.record else { return };
    let text = |field| object.get(field).and_then(|object| object.text(field).ok());
    let policy = text(Field::Policy).or_else(|| text(Field::Limit)).unwrap_or_default();
    let key = object.get(Field::Key).and_then(|object| object.clone().bytes(Field::Key).ok());
    let decoded =
        || object.get(Field::KeyBase64).and_then(|object| object.base64(Field::KeyBase64).ok());
    let key = key.or_else(|| decoded().map(Cow::Owned)).unwrap_or_default();
    record.is_about(Subject {
        policy: policy.chars().take(MAX_SHOWN).collect(),
        key: exchange.live.shown(&key),
    });
}

/// Decides one check.
async fn decide(
    verb: Operation,
    asked: &Asked<'_>,
    request_id: Option<&str>,
    daemon: &Daemon,
) -> Result<Decision, StoreError> {
    if let (Operation::Check { lease: None }, None) = (verb, request_id) {
        // The plain check, which is nearly all of them.
        let key = asked.key().map_err(StoreError::Request)?;
        return daemon.limiter().check_cost(asked.policy(), key, asked.cost()).await;
    }
    let request_id = request_id.map(str::as_bytes);
    let request = Request { operation: verb, checks: &[asked.check()], request_id };
    let answer = daemon.limiter().decide(&request).await?;
    Ok(answer.decisions.into_iter().next().unwrap_or_default())
}

/// What names the request as a whole.
fn request_id<'a>(object: &mut Object<'a>) -> Result<Option<Cow<'a, str>>, Problem> {
    let Some(written) = object.take(Field::RequestId) else { return Ok(None) };
    let text = written.text(Field::RequestId)?;
    if (1..=MAX_REQUEST_ID_LEN).contains(&text.len()) {
        return Ok(Some(text));
    }
    let detail = format!(
        "request_id has {} bytes; write 1 to {MAX_REQUEST_ID_LEN} that no other request has",
        text.len()
    );
    Err(Problem::bad(detail).of(Field::RequestId).with_value(&written.json()))
}

/// The checks of a request of several.
fn asked_together<'a>(
    object: &Object<'_>,
    checks: &'a Written<'a>,
    exchange: &Exchange<'a>,
) -> Result<Vec<Asked<'a>>, Problem> {
    if let Some(field) = object.first_of(FIELDS_OF_CHECK) {
        let detail = format!("{} and checks are both there; write it in each check", field.name());
        return Err(Problem::bad(detail).of(field));
    }
    let most = exchange.live.bounds.checks;
    let Written::Json(list) = checks else { return Ok(Vec::new()) };
    let objects = Object::list(list, FIELDS_OF_CHECK, most)?;
    match objects.len() {
        0 => return Err(Problem::bad("checks is empty; it needs at least one").of(Field::Checks)),
        many if many > most => {
            let detail = format!("more than {most} checks are too many; send several requests");
            return Err(Problem::bad(detail).of(Field::Checks));
        }
        _ => {}
    }
    let take = |(index, mut object): (usize, Object<'a>)| {
        Asked::take(&mut object, exchange).map_err(|error| error.in_check(index))
    };
    objects.into_iter().enumerate().map(take).collect()
}

async fn answer_several(
    spoken: &Spoken,
    verb: Operation,
    asked: &[Asked<'_>],
    request_id: Option<&str>,
    exchange: &Exchange<'_>,
    told_by_status: bool,
) -> Result<Reply, Problem> {
    let checks: Vec<_> = asked.iter().map(Asked::check).collect();
    let request_id = request_id.map(str::as_bytes);
    let request = Request { operation: verb, checks: &checks, request_id };
    let timed = exchange.timed(Surface::Http);
    let decided = exchange.daemon.limiter().decide(&request).await;
    if spoken.has_verdict() {
        let policies = asked.iter().map(Asked::policy);
        match &decided {
            Ok(answer) => timed.decided(policies.zip(&answer.decisions)),
            Err(error) => timed.refused(policies, error),
        }
    }
    let answer = decided?;
    let verdict = Verdict::of_several(&answer);
    let body = json::several(asked, &answer, spoken.shape());
    let told = Some(verdict).filter(|_| told_by_status && spoken.has_verdict());
    let mut reply = reply::json(body, told);
    if spoken.decides() {
        let decisions = asked.iter().map(Asked::policy).zip(&answer.decisions);
        headers::write(&exchange.live.headers, reply.headers_mut(), decisions);
    }
    Ok(reply)
}

impl Spoken {
    /// A verb that is only posted, with the scope `check`; the rest of a verb's file says what
    /// differs.
    const fn new(
        name: &'static str,
        about: &'static str,
        fields: &'static [Field],
        answers: Answers,
        verb: fn(&mut Object<'_>) -> Result<Operation, Problem>,
    ) -> Self {
        Spoken {
            name,
            about,
            fields,
            by_query: false,
            fields_of_query: &[],
            needs: &[],
            scopes: &[Scope::Check],
            answers,
            verb,
        }
    }

    /// Whether it is an operator's, and so of the audit.
    pub(super) fn is_for_operators(&self) -> bool {
        self.scopes.contains(&Scope::Operate)
    }

    /// Whether a cost above the capacity has an answer of its own: what is taken is at most what
    /// is there.
    pub(super) fn can_be_never(&self) -> bool {
        self.answers == Answers::Verdict && self.name != "take"
    }

    /// Whether there is nothing to answer while the store is away: a policy says what a decision
    /// is then, and no more.
    pub(super) fn needs_store(&self) -> bool {
        !self.decides()
    }

    fn shape(&self) -> Shape {
        if self.answers == Answers::Change { Shape::Change } else { Shape::Decision }
    }

    fn has_verdict(&self) -> bool {
        self.answers == Answers::Verdict
    }

    /// Whether its answer is a decision, made or only looked at.
    pub(super) fn decides(&self) -> bool {
        matches!(self.answers, Answers::Verdict | Answers::Decision)
    }
}

/// The id that a field gives.
fn id(object: &mut Object<'_>, field: Field) -> Result<Option<Id>, Problem> {
    object.take(field).map(|object| object.id(field)).transpose()
}

/// The id that a field must give.
fn needed_id(object: &mut Object<'_>, field: Field) -> Result<Id, Problem> {
    id(object, field)?.ok_or_else(|| {
        let detail = format!(
            "{} is missing; write the one that was answered, 32 hexadecimal digits",
            field.name()
        );
        Problem::bad(detail).of(field)
    })
}

/// The id that a field gives, or a new one.
fn id_or_drawn(object: &mut Object<'_>, field: Field) -> Result<Id, Problem> {
    Ok(id(object, field)?.unwrap_or_else(random_id))
}

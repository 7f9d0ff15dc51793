//! The JSON API: `POST /v1/<operation>`, and `GET` for operations that change nothing.

use std::borrow::Cow;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Request};
use tollgate::{Cost, Timestamp};
use tollgate_engine::{
    ActiveConfig, Arguments, AuditRecord, CHECK_PARAMETERS, Call, CheckRequest, Checks, Engine,
    OperationSpec, Outcome, Parameter, PolicySelector, Remote, RequestContext, RequestId,
    ResponseKind, Surface,
};
use tollgate_insight::KeyRecord;

use super::authentication::{TokenHeader, authenticate};
use super::object::{Object, STATUS};
use super::origin::RequestHead;
use super::problem::Problem;
use super::reply::{self, Reply, Verdict};
use super::value::{Source, Value};
use super::{body, json, traceparent};

/// The parameters of a query.
pub(super) const QUERY_PARAMETERS: &[Parameter] = &[
    Parameter::Policy,
    Parameter::Tier,
    Parameter::Limit,
    Parameter::Key,
    Parameter::KeyBase64,
    Parameter::Domain,
    Parameter::Descriptor,
    Parameter::Cost,
];

/// Whether an operation can also be requested by `GET` with a query.
pub(super) fn has_query_form(spec: &OperationSpec) -> bool {
    spec.response == ResponseKind::Preview
}

/// Answers a request for an operation. `serves_pages` is whether the listener does.
pub(super) async fn answer(
    engine: &Engine,
    remote: &Remote,
    spec: &'static OperationSpec,
    request: Request<Incoming>,
    serves_pages: bool,
) -> Result<Reply, Problem> {
    let (head, body) = request.into_parts();
    let active = engine.active();
    let (request_head, header) = (RequestHead::from(&head), TokenHeader::Authorization);
    let request_head = if serves_pages { request_head.to_pages() } else { request_head };
    let principal = authenticate(engine, &active, remote, request_head, header).await;
    let originator = principal.as_ref().ok().copied();
    let mut audit = spec.is_audited().then(|| engine.audit(spec.name, originator, remote));
    let origin = request_head.check_origin(remote, &active);
    let result = match origin.and(principal.map_err(Problem::from)) {
        Ok(principal) => {
            let traceparent = traceparent(&head.headers);
            let surface = Surface::Http;
            let context =
                RequestContext { engine, active: &active, principal, surface, traceparent };
            execute(&context, spec, &head, body, &mut audit).await
        }
        Err(problem) => Err(problem),
    };
    // A call that was executed has ended its record.
    if let (Some(audit), Err(problem)) = (audit, &result) {
        audit.fail(problem.is_denial(), problem.detail());
    }
    result
}

async fn execute<'a>(
    context: &RequestContext<'a>,
    spec: &'static OperationSpec,
    head: &Parts,
    body: Incoming,
    audit: &mut Option<AuditRecord<'a>>,
) -> Result<Reply, Problem> {
    if let Err(error) = context.principal.authorize(spec.scopes, spec.name) {
        if let Some(audit) = audit {
            audit_unauthorized(context, spec, body, audit).await;
        }
        return Err(error.into());
    }
    let query = head.uri.query().unwrap_or_default();
    let bytes;
    let (mut object, has_verdict_status) = if head.method == Method::GET {
        let mut query = Object::from_query(query, QUERY_PARAMETERS)?;
        let has_verdict_status = has_verdict_status(&mut query)?;
        (query, has_verdict_status)
    } else {
        let has_verdict_status = has_verdict_status(&mut Object::from_query(query, &[])?)?;
        bytes = body::read(body, &context.active.bounds).await?;
        (Object::from_json(body::text(&bytes)?, spec.parameters)?, has_verdict_status)
    };
    if let Some(audit) = audit {
        set_subject(audit, &object, context.active);
    }
    let checks = object.take(Parameter::Checks);
    let mut call = parse_call(&mut object, checks.as_ref(), spec, context)?;
    if let Some(audit) = audit.take() {
        call = call.with_audit(audit);
    }
    let outcome = context.execute(&mut call).await?;
    let record = match (&outcome, &call.checks) {
        (Outcome::Inspection(_), Checks::One(check)) => {
            context.key_record(&check.policy, &check.key).await?
        }
        _ => None,
    };
    Ok(respond(context, spec, &call, &outcome, record.as_ref(), has_verdict_status))
}

/// Notes the subject of an unauthorized request in the audit, as far as it can be parsed.
async fn audit_unauthorized(
    context: &RequestContext<'_>,
    spec: &'static OperationSpec,
    body: Incoming,
    audit: &mut AuditRecord<'_>,
) {
    let Ok(bytes) = body::read(body, &context.active.bounds).await else { return };
    let object = body::text(&bytes).and_then(|text| Object::from_json(text, spec.parameters));
    if let Ok(object) = object {
        set_subject(audit, &object, context.active);
    }
}

/// Notes the policy and the key of a request; both are empty where they cannot be parsed.
fn set_subject(audit: &mut AuditRecord<'_>, object: &Object<'_>, active: &ActiveConfig) {
    let text = |parameter| object.get(parameter).and_then(|value| value.text().ok());
    let policy = text(Parameter::Policy)
        .or_else(|| text(Parameter::Limit))
        .or_else(|| text(Parameter::Domain))
        .unwrap_or_default();
    let key = object.get(Parameter::Key).or_else(|| object.get(Parameter::Descriptor));
    let key = key.and_then(|value| value.bytes().ok());
    let base64 = || object.get(Parameter::KeyBase64).and_then(|value| value.base64().ok());
    let key = key.or_else(|| base64().map(Cow::Owned)).unwrap_or_default();
    audit.set_subject(active, &policy, &key);
}

/// Whether the status of the response reflects the verdict: `?status=200` turns that off.
fn has_verdict_status(query: &mut Object<'_>) -> Result<bool, Problem> {
    let Some(status) = query.take_status() else { return Ok(true) };
    if status.text()? == "200" {
        return Ok(false);
    }
    let detail = "status must be 200, for that status on all decisions, or absent";
    Err(Problem::bad_request(detail).at(STATUS).with_value(&status.json()))
}

fn parse_call<'a>(
    object: &mut Object<'a>,
    checks: Option<&Value<'a>>,
    spec: &OperationSpec,
    context: &RequestContext<'a>,
) -> Result<Call<'a, 'a>, Problem> {
    let action = spec.action(&parse_arguments(object)?)?;
    let request_id = match object.take(Parameter::RequestId) {
        None => None,
        Some(value) => Some(RequestId::new(into_bytes(value.text()?))?),
    };
    let checks = match checks {
        None => Checks::One(parse_check(object, spec, context)?),
        Some(checks) => Checks::Several(parse_checks(object, checks, spec, context)?),
    };
    Ok(Call::new(action, checks).with_request_id(request_id.as_ref(), context.principal))
}

fn parse_arguments(object: &mut Object<'_>) -> Result<Arguments, Problem> {
    let mut duration = |parameter| object.take(parameter).map(|value| value.duration()).transpose();
    let (max_wait, span) = (duration(Parameter::MaxWait)?, duration(Parameter::For)?);
    let time = object.take(Parameter::Time).map(|value| value.seconds()).transpose()?;
    let mut id = |parameter| object.take(parameter).map(|value| value.id()).transpose();
    let (lease, reservation) = (id(Parameter::LeaseId)?, id(Parameter::ReservationId)?);
    let time = time.map(|time| Timestamp::from_micros(time.get()));
    Ok(Arguments { max_wait, span, time, lease, reservation })
}

/// Parses the parameters of one check.
fn parse_check<'a>(
    object: &mut Object<'a>,
    spec: &OperationSpec,
    context: &RequestContext<'a>,
) -> Result<CheckRequest<'a>, Problem> {
    let note = object.take(Parameter::Note).map(|note| note.text()).transpose()?;
    if let Some(check) = parse_descriptor(object, spec, context)? {
        return Ok(check.with_note(note)?);
    }
    let mut text = |parameter| object.take(parameter).map(|value| value.text()).transpose();
    let (policy, tier) = (text(Parameter::Policy)?, text(Parameter::Tier)?);
    let limit = text(Parameter::Limit)?;
    let selector = PolicySelector {
        policy: policy.as_deref(),
        tier: tier.as_deref(),
        limit: limit.as_deref(),
    };
    let key = parse_key(object, context.active.bounds.key_bytes);
    // An error in the policy is reported before one in the key.
    let policy = context.resolve(selector, key.as_deref().unwrap_or_default())?;
    let cost = parse_cost(object, spec)?;
    let hint = context.tier_hint(&policy, tier.as_deref());
    let mut check = CheckRequest::new(policy, key?, cost).with_note(note)?;
    check.hint = hint;
    Ok(check)
}

fn parse_cost(object: &mut Object<'_>, spec: &OperationSpec) -> Result<Cost, Problem> {
    let cost = object.take(Parameter::Cost).map(|value| value.cost()).transpose()?;
    Ok(spec.cost(cost)?)
}

/// Parses the parameters of a descriptor of Envoy's rate limit service, which are in the place of
/// policy and key; absent without them.
fn parse_descriptor<'a>(
    object: &mut Object<'a>,
    spec: &OperationSpec,
    context: &RequestContext<'a>,
) -> Result<Option<CheckRequest<'a>>, Problem> {
    use Parameter::{Descriptor, Domain, Key, KeyBase64, Limit, Policy, Tier};
    let (domain, descriptor) = match (object.take(Domain), object.take(Descriptor)) {
        (None, None) => return Ok(None),
        (Some(domain), Some(descriptor)) => (domain.text()?, descriptor.text()?),
        (domain, _) => {
            let missing = if domain.is_some() { Descriptor } else { Domain };
            let example = "{\"domain\":\"edge\",\"descriptor\":\"remote_address=10.0.0.1\"}";
            let name = missing.name();
            let detail = format!("{name} is missing; send both, as in {example}");
            return Err(Problem::bad_request(detail).at(name));
        }
    };
    if let Some(other) = object.first_present(&[Policy, Tier, Limit, Key, KeyBase64]) {
        let name = other.name();
        let detail = format!("{name} and domain are mutually exclusive; leave one of them out");
        return Err(Problem::bad_request(detail).at(name));
    }
    let (policy, key) = context.resolve_descriptor(&domain, &descriptor)?;
    Ok(Some(CheckRequest::new(policy, Cow::Owned(key), parse_cost(object, spec)?)))
}

fn parse_key<'a>(object: &mut Object<'a>, max_len: usize) -> Result<Cow<'a, [u8]>, Problem> {
    let (parameter, key) = match (object.take(Parameter::Key), object.take(Parameter::KeyBase64)) {
        (Some(key), None) => (Parameter::Key, key.bytes()?),
        (None, Some(key)) => (Parameter::KeyBase64, key.base64()?.into()),
        (Some(_), Some(_)) => {
            let detail = "key and key_base64 are mutually exclusive; leave one of them out";
            return Err(Problem::bad_request(detail).at(Parameter::KeyBase64.name()));
        }
        (None, None) => {
            let detail = "key is missing; send the identity to limit, such as \"user:42\"";
            return Err(Problem::bad_request(detail).at(Parameter::Key.name()));
        }
    };
    let name = parameter.name();
    match key.len() {
        0 => {
            let detail = format!("{name} is empty; it must have 1 to {max_len} bytes");
            Err(Problem::bad_request(detail).at(name).with_value("\"\""))
        }
        len if len > max_len => {
            let detail =
                format!("{name} has {len} bytes, more than the maximum of {max_len}; send a hash");
            Err(Problem::bad_request(detail).at(name))
        }
        _ => Ok(key),
    }
}

/// Parses the list of a request with several checks; `object` has the other parameters.
fn parse_checks<'a>(
    object: &Object<'_>,
    checks: &Value<'a>,
    spec: &OperationSpec,
    context: &RequestContext<'a>,
) -> Result<Vec<CheckRequest<'a>>, Problem> {
    let invalid =
        |detail: String, parameter: Parameter| Problem::bad_request(detail).at(parameter.name());
    if let Some(parameter) = object.first_present(CHECK_PARAMETERS) {
        let name = parameter.name();
        let detail = format!("{name} and checks are mutually exclusive; set {name} in each check");
        return Err(invalid(detail, parameter));
    }
    let max = context.active.bounds.checks;
    let Source::Json(list) = checks.source else {
        unreachable!("a query does not accept the parameter checks");
    };
    let objects = Object::list(list, CHECK_PARAMETERS, max)?;
    if objects.is_empty() {
        return Err(invalid("checks is empty; send at least one".to_owned(), Parameter::Checks));
    }
    if objects.len() > max {
        let detail = format!("a request has at most {max} checks; send several requests");
        return Err(invalid(detail, Parameter::Checks));
    }
    objects
        .into_iter()
        .enumerate()
        .map(|(index, mut object)| {
            parse_check(&mut object, spec, context).map_err(|problem| problem.in_check(index))
        })
        .collect()
}

fn into_bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn respond(
    context: &RequestContext<'_>,
    spec: &OperationSpec,
    call: &Call<'_, '_>,
    outcome: &Outcome,
    record: Option<&KeyRecord>,
    has_verdict_status: bool,
) -> Reply {
    let checks = call.checks.as_slice();
    let hint = context.active.hint(call, outcome);
    let hint = hint.as_deref();
    let (body, verdict, decisions) = match (outcome, &call.checks) {
        (Outcome::Decision(decision), Checks::One(check)) if !spec.decides() => {
            let json = json::change(&check.policy, call.action, decision, hint);
            return reply::json(json, None);
        }
        (Outcome::Decisions(answer), Checks::Several(_)) if !spec.decides() => {
            return reply::json(json::changes(checks, call.action, answer), None);
        }
        (Outcome::Decision(decision), Checks::One(check)) => (
            json::decision(&check.policy, decision, hint),
            Verdict::new(decision),
            std::slice::from_ref(decision),
        ),
        (Outcome::Decisions(answer), Checks::Several(_)) => {
            (json::decisions(checks, answer), Verdict::from_answer(answer), &*answer.decisions)
        }
        (Outcome::Inspection(inspection), Checks::One(check)) => {
            // With an id, any client could release the lease of another.
            let has_ids = context.principal.is_operator();
            let json = json::inspection(&check.policy, inspection, record, has_ids, hint);
            return reply::json(json, None);
        }
        _ => unreachable!("one check has one decision, and several have several"),
    };
    let is_verdict = has_verdict_status && spec.response == ResponseKind::Verdict;
    let mut reply = reply::json(body, is_verdict.then_some(verdict));
    let decisions = call.checks.policies().zip(decisions);
    tollgate_headers::write(&context.active.headers, reply.headers_mut(), decisions);
    reply
}

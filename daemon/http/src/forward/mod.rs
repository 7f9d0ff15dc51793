//! Forward auth: `/v1/forward-auth/<gateway>`, where a gateway asks whether to admit a request of
//! its client. Policy, key and cost come from the rules alone.
//!
//! Most gateways use the status only: 200 admits, 429 (or that of `?deny=`) denies, and 5xx is an
//! error. No client may be able to cause an error: a gateway that fails open would admit it.

mod denial;
mod gateway;

use std::borrow::Cow;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use tollgate::{Operation, Policy};
use tollgate_engine::{
    Action, Call, CheckRequest, Checks, Engine, Error, MAX_QUOTED_LEN, Outcome, PeerAddress,
    PolicySelector, Remote, RequestContext, Surface,
};

use self::denial::Denial;
pub(super) use self::denial::DenialKind;
pub(super) use self::gateway::{GATEWAYS, GatewayProtocol};
use super::authentication::{TokenHeader, authenticate};
use super::problem::{Problem, ProblemKind};
use super::reply::{self, Reply};
use super::{HttpState, traceparent};
use tollgate_config::Scope;
use tollgate_rules::{
    Client, ClientAddressError, Facts, KeyError, MatchedCheck, OnNoRule, Peer, RuleOutcome, query,
};

/// The path, without the gateway's name.
pub(super) const PREFIX: &str = "/v1/forward-auth/";

/// The gateway of a path.
pub(super) fn from_path(path: &str) -> Option<Result<&'static GatewayProtocol, Problem>> {
    let rest = path.strip_prefix(PREFIX)?;
    let name = rest.split_once('/').map_or(rest, |(name, _)| name);
    let found = GATEWAYS.iter().find(|gateway| gateway.name == name);
    Some(found.ok_or_else(|| {
        let known: Vec<_> = GATEWAYS.iter().map(|gateway| gateway.name).collect();
        let shown: String = name.chars().take(64).collect();
        let detail = format!("unknown gateway {shown:?}; expected one of {}", known.join(", "));
        Problem::new(ProblemKind::UnknownPath, detail)
    }))
}

/// Answers a gateway, whatever the method. The body is not read.
pub(super) async fn answer(
    engine: &Engine,
    state: &HttpState,
    remote: &Remote,
    gateway: &'static GatewayProtocol,
    request: Request<Incoming>,
) -> Reply {
    let (head, _) = request.into_parts();
    let active = engine.active();
    let header = TokenHeader::TollgateToken;
    let principal =
        authenticate(engine, &active, remote, (&head).into(), header).await.and_then(|principal| {
            principal.authorize(&[Scope::Check], "forward-auth").map(|()| principal)
        });
    let principal = match principal {
        Ok(principal) => principal,
        // Not 5xx: a gateway that fails open would admit its clients for lack of a token.
        Err(error) => return reply::problem(&error.into()),
    };
    let context = RequestContext {
        engine,
        active: &active,
        principal,
        surface: Surface::ForwardAuth,
        traceparent: traceparent(&head.headers),
    };
    decide(gateway, &head, &context, state, remote).await.unwrap_or_else(|problem| {
        if let Some((requests, all)) = state.undecided.count(engine.clock().now()) {
            let (gateway, detail) = (gateway.name, problem.detail());
            tracing::warn!(gateway, requests, all, "no decision: {detail}");
        }
        reply::problem(&problem)
    })
}

async fn decide(
    gateway: &GatewayProtocol,
    head: &Parts,
    context: &RequestContext<'_>,
    state: &HttpState,
    remote: &Remote,
) -> Result<Reply, Problem> {
    let deny = denial_status(gateway, head)?;
    let counters = &context.engine.counters;
    let checks = match match_rules(gateway, head, context, remote)? {
        Ok(RuleOutcome::Checks(checks)) if checks.is_empty() => return Ok(reply::pass()),
        Ok(RuleOutcome::Checks(checks)) => checks,
        Ok(RuleOutcome::NoRule(OnNoRule::Pass)) => {
            counters.no_rule_allowed.increment();
            return Ok(reply::pass());
        }
        Ok(RuleOutcome::NoRule(OnNoRule::Deny)) => {
            counters.no_rule_denied.increment();
            return Ok(Denial::from_rules("no rule matches this request".to_owned()).reply(deny));
        }
        Ok(RuleOutcome::Deny(reason))
        | Err(reason @ (KeyError::Ambiguous(_) | KeyError::TooLong(..))) => {
            return Ok(Denial::from_rules(reason.to_string()).reply(deny));
        }
        Err(reason) => return Err(missing_value(&reason, gateway)),
    };
    execute(&checks, deny, context, state).await
}

/// The status of denials: 429, or that of the query for gateways that support fewer.
fn denial_status(gateway: &GatewayProtocol, head: &Parts) -> Result<StatusCode, Problem> {
    let mut status = StatusCode::TOO_MANY_REQUESTS;
    let query = head.uri.query().filter(|_| gateway.has_query()).unwrap_or_default();
    for (name, value) in query::pairs(query.as_bytes()) {
        status = match (&*name, &*value) {
            (b"deny", b"401") => StatusCode::UNAUTHORIZED,
            (b"deny", b"403") => StatusCode::FORBIDDEN,
            (b"deny", b"429") => StatusCode::TOO_MANY_REQUESTS,
            (b"deny", _) => return Err(no_decision("deny must be 401, 403 or 429, or absent")),
            _ => return Err(no_decision("unknown query parameter; expected deny=401 or deny=403")),
        };
    }
    Ok(status)
}

/// Evaluates the rules for the client's request.
fn match_rules<'a>(
    gateway: &GatewayProtocol,
    head: &Parts,
    context: &RequestContext<'a>,
    remote: &Remote,
) -> Result<Result<RuleOutcome<'a>, KeyError>, Problem> {
    let active = context.active;
    let method = gateway.method(head).map_err(no_decision)?;
    let target = gateway.target(head).map_err(no_decision)?;
    let host = gateway.host(head);
    let mut facts = Facts::new(method, target, &head.headers);
    facts.host = host.as_deref().map_err(String::as_str);
    facts.has_joined_headers = gateway.joins_headers;
    facts.client = Client::FromHeader {
        header: gateway.address,
        peer: match remote.peer {
            PeerAddress::Tcp(address) => Peer::Ip(address.ip()),
            PeerAddress::Unix => Peer::Unix,
        },
        trusted: &active.trusted_proxies,
    };
    facts.ipv6_prefix = active.ipv6_prefix;
    facts.jwt = active.jwt.as_ref();
    facts.now = context.engine.clock().now();
    Ok(active.rules.evaluate(&facts, active.bounds.key_bytes))
}

/// Executes all checks together.
async fn execute(
    matched: &[MatchedCheck<'_>],
    deny: StatusCode,
    context: &RequestContext<'_>,
    state: &HttpState,
) -> Result<Reply, Problem> {
    let mut checks = Vec::with_capacity(matched.len());
    for check in matched {
        let policy = resolve(check, context).map_err(|error| match error.is_denial() {
            true => error.into(),
            false => no_decision(error.detail()),
        })?;
        report_unknown_tier(check, &policy, context, state);
        let request = CheckRequest::new(policy, Cow::Borrowed(&check.key), check.cost);
        checks.push(request.with_shortened_note(check.note.as_deref()));
    }
    let action = Action::Execute(Operation::Check { lease: None });
    let mut call = Call::new(action, Checks::Several(checks));
    let outcome = context.execute(&mut call).await.map_err(|error| no_decision(error.detail()))?;
    let Outcome::Decisions(answer) = outcome else {
        unreachable!("several checks have several decisions");
    };
    let decisions = call.checks.policies().zip(&answer.decisions);
    let mut reply = Denial::from_decisions(decisions.clone(), &answer)
        .map_or_else(reply::pass, |denial| denial.reply(deny));
    tollgate_headers::write(&context.active.headers, reply.headers_mut(), decisions);
    Ok(reply)
}

/// Resolves the policy of a rule's check. A tier that is not UTF-8 is unknown.
fn resolve<'a>(
    check: &MatchedCheck<'_>,
    context: &RequestContext<'a>,
) -> Result<Cow<'a, Policy>, Error> {
    let tier = check.tier.as_deref().and_then(|tier| str::from_utf8(tier).ok());
    let selector = PolicySelector { policy: Some(check.policy), tier, limit: None };
    context.resolve(selector, &check.key)
}

/// Logs, at most every few seconds, a tier that the policy does not have: an operator's mistake, or a
/// plan that is new.
fn report_unknown_tier(
    check: &MatchedCheck<'_>,
    policy: &Policy,
    context: &RequestContext<'_>,
    state: &HttpState,
) {
    let Some(tier) = check.tier.as_deref().map(String::from_utf8_lossy) else { return };
    if context.tier_hint(policy, Some(&tier)).is_none() {
        return;
    }
    if let Some((requests, all)) = state.unknown_tiers.count(context.engine.clock().now()) {
        let tier: String = tier.chars().take(MAX_QUOTED_LEN).collect();
        let policy = policy.name();
        tracing::warn!(
            policy,
            tier,
            requests,
            all,
            "unknown tier: the limits without a tier apply"
        );
    }
}

fn no_decision(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::NoDecision, detail)
}

fn missing_value(reason: &KeyError, gateway: &GatewayProtocol) -> Problem {
    match reason {
        KeyError::Address(ClientAddressError::Untrusted(_)) => no_decision(reason.to_string()),
        KeyError::Address(_) => {
            no_decision(format!("{reason}; configure the gateway with {}", gateway.address_line))
        }
        KeyError::Missing(_) => no_decision(format!(
            "{reason}, and on_missing of the rule is error; leave that out to deny the request"
        )),
        _ => no_decision(reason.to_string()),
    }
}

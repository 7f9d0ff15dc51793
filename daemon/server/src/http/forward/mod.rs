//! Forward-auth: `/v1/forward-auth/DIALECT`, where a gateway asks whether a request of its client may
//! go on. Policy, key and cost are the rules' alone.
//!
//! The status is all that most gateways look at: 200 passes, 429 (or what `?deny=` says) denies, and
//! 5xx says that there is no decision. What a client can bring about by itself is never the last: a
//! gateway that fails open would let it pass.

mod caddy;
mod denial;
mod dialect;
mod envoy;
mod haproxy;
mod nginx;
mod traefik;

use hyper::StatusCode;
use hyper::http::request::Parts;
use tollgate::{Check, Operation, Policies, Policy, Request, ResolveError};

use self::denial::Denial;
pub(super) use self::denial::DenialKind;
pub(super) use self::dialect::Dialect;
use super::exchange::Exchange;
use super::headers;
use super::problem::{Kind, Problem};
use super::reply::{self, Reply};
use crate::metrics::Surface;
use crate::query;
use crate::rules::{
    Client, ClientAddressError, Facts, KeyError, MatchedCheck, OnNoRule, RuleOutcome,
};

/// Before the name of the dialect.
pub(super) const PREFIX: &str = "/v1/forward-auth/";

pub(super) static DIALECTS: [Dialect; 5] =
    [nginx::NGINX, caddy::CADDY, traefik::TRAEFIK, haproxy::HAPROXY, envoy::ENVOY];

/// The dialect that a path is for.
pub(super) fn of_path(path: &str) -> Option<Result<&'static Dialect, Problem>> {
    let name = path.strip_prefix(PREFIX)?;
    let name = name.split('/').next().unwrap_or_default();
    let found = DIALECTS.iter().find(|dialect| dialect.name == name);
    Some(found.ok_or_else(|| {
        let known: Vec<_> = DIALECTS.iter().map(|dialect| dialect.name).collect();
        let shown: String = name.chars().take(64).collect();
        let detail = format!("there is no gateway {shown:?}; write one of {}", known.join(", "));
        Problem::new(Kind::UnknownPath, detail)
    }))
}

/// Answers a gateway.
pub(super) async fn answer(dialect: &Dialect, head: &Parts, exchange: &Exchange<'_>) -> Reply {
    decide(dialect, head, exchange).await.unwrap_or_else(|problem| {
        let daemon = exchange.daemon;
        if let Some((requests, all)) = daemon.undecided.count(daemon.clock.now()) {
            let dialect = dialect.name;
            tracing::warn!(dialect, requests, all, "no decision: {}", problem.detail());
        }
        reply::problem(&problem)
    })
}

async fn decide(
    dialect: &Dialect,
    head: &Parts,
    exchange: &Exchange<'_>,
) -> Result<Reply, Problem> {
    let deny = status_of_denials(dialect, head)?;
    let checks = match asked(dialect, head, exchange)? {
        Ok(RuleOutcome::Checks(checks)) if checks.is_empty() => {
            return Ok(reply::pass());
        }
        Ok(RuleOutcome::Checks(checks)) => checks,
        Ok(RuleOutcome::NoRule(OnNoRule::Pass)) => {
            exchange.daemon.metrics.no_rule(true);
            return Ok(reply::pass());
        }
        Ok(RuleOutcome::NoRule(OnNoRule::Deny)) => {
            exchange.daemon.metrics.no_rule(false);
            return Ok(Denial::of_no_rule().reply(deny));
        }
        Ok(RuleOutcome::Deny(why))
        | Err(why @ (KeyError::Ambiguous(_) | KeyError::TooLong(..))) => {
            return Ok(Denial::of_no_key(&why).reply(deny));
        }
        Err(why) => return Err(no_value(&why, dialect)),
    };
    ask(&checks, deny, exchange).await
}

/// The status that denials have: 429, or what the address that the recipe asks at says for gateways
/// that know fewer.
fn status_of_denials(dialect: &Dialect, head: &Parts) -> Result<StatusCode, Problem> {
    let mut status = StatusCode::TOO_MANY_REQUESTS;
    let query = head.uri.query().filter(|_| dialect.has_query()).unwrap_or_default();
    for (name, value) in query::pairs(query.as_bytes()) {
        status = match (&*name, &*value) {
            (b"deny", b"401") => StatusCode::UNAUTHORIZED,
            (b"deny", b"403") => StatusCode::FORBIDDEN,
            (b"deny", b"429") => StatusCode::TOO_MANY_REQUESTS,
            (b"deny", _) => return Err(no_decision("deny may be 401, 403 or 429, or be left out")),
            _ => {
                return Err(no_decision(
                    "the query may say deny=401 or deny=403, and nothing else",
                ));
            }
        };
    }
    Ok(status)
}

/// What the rules ask for the request that the gateway tells of.
fn asked<'a>(
    dialect: &Dialect,
    head: &Parts,
    exchange: &Exchange<'a>,
) -> Result<Result<RuleOutcome<'a>, KeyError>, Problem> {
    let live = exchange.live;
    let method = dialect.method(head).map_err(no_decision)?;
    let target = dialect.target(head).map_err(no_decision)?;
    let host = dialect.host(head);
    let mut facts = Facts::new(method, target, &head.headers);
    facts.host = host.as_deref().map_err(String::as_str);
    facts.client = Client::FromHeader {
        header: dialect.address,
        peer: exchange.caller.peer(),
        trusted: &live.trusted_proxies,
    };
    facts.ipv6_prefix = live.ipv6_prefix;
    facts.jwt = live.jwt.as_ref();
    facts.now = exchange.daemon.clock.now();
    Ok(live.rules.evaluate(&facts, live.bounds.key_bytes))
}

/// Has the checks decided, all together.
async fn ask(
    asked: &[MatchedCheck<'_>],
    deny: StatusCode,
    exchange: &Exchange<'_>,
) -> Result<Reply, Problem> {
    let form = |x| form_of(x, &exchange.live.policies);
    let policies: Result<Vec<_>, _> = asked.iter().map(form).collect();
    let policies = policies.map_err(|error| no_decision(error.to_string()))?;
    for check in asked {
        exchange.caller.must_be_for(check.policy)?;
    }
    let pairs = asked.iter().zip(&policies);
    let checks: Vec<_> =
        pairs.map(|(x, policy)| Check { policy, key: &x.key, cost: x.cost }).collect();
    let request =
        Request { operation: Operation::Check { lease: None }, checks: &checks, request_id: None };
    let timed = exchange.timed(Surface::ForwardAuth);
    let answer = exchange.daemon.limiter().decide(&request).await;
    match &answer {
        Ok(answer) => timed.decided(policies.iter().copied().zip(&answer.decisions)),
        Err(error) => timed.refused(policies.iter().copied(), error),
    }
    let answer = answer.map_err(|error| no_decision(error.to_string()))?;
    let mut reply =
        Denial::of(&policies, &answer).map_or_else(reply::pass, |denial| denial.reply(deny));
    let decisions = policies.iter().copied().zip(&answer.decisions);
    headers::write(&exchange.live.headers, reply.headers_mut(), decisions);
    Ok(reply)
}

/// The form of its policy that decides for a key. Of a tier that there is not, which a client may
/// well ask for, it is the usual: that is for everyone.
fn form_of<'a>(
    asked: &MatchedCheck<'_>,
    policies: &'a Policies,
) -> Result<&'a Policy, ResolveError> {
    let tier = asked.tier.as_deref().and_then(|tier| str::from_utf8(tier).ok());
    let form = policies.resolve(asked.policy, &asked.key, tier);
    match form {
        Err(ResolveError::Tier(_)) => policies.resolve(asked.policy, &asked.key, None),
        other => other,
    }
}

fn no_decision(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::NoDecision, detail)
}

fn no_value(why: &KeyError, dialect: &Dialect) -> Problem {
    match why {
        KeyError::Address(ClientAddressError::Untrusted(_)) | KeyError::Host(_) => {
            no_decision(why.to_string())
        }
        KeyError::Address(_) => no_decision(format!("{why}: write {}", dialect.address_line)),
        KeyError::Missing(_) => no_decision(format!(
            "{why}, and the rule's on_missing says that this is an error; leave that out, and it is \
             denied"
        )),
        _ => no_decision(why.to_string()),
    }
}

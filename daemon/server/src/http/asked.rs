//! One check as it was asked: under which policy, of which key, at what cost.

use std::borrow::Cow;
use std::ops::Deref;

use tollgate::{Check, Cost, Key, Policy, RequestError, ResolveError};

use super::exchange::Exchange;
use super::field::Field;
use super::object::Object;
use super::problem::Problem;
use super::written::Written;
use crate::config::Scope;

/// A check that can be decided, but for what the verb asks of its policy.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    policy: Resolved<'a>,
    key: Cow<'a, [u8]>,
    cost: Cost,
}

/// A policy in the form that it has for the key, or one that limits in its place make.
#[derive(Debug)]
enum Resolved<'a> {
    Configured(&'a Policy),
    Inline(Policy),
}

impl Deref for Resolved<'_> {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        match self {
            Resolved::Configured(configured) => configured,
            Resolved::Inline(inline) => inline,
        }
    }
}

impl<'a> Asked<'a> {
    /// Takes a check's fields out of an object.
    pub(super) fn take(object: &mut Object<'a>, exchange: &Exchange<'a>) -> Result<Self, Problem> {
        if let Some(note) = object.take(Field::Note) {
            note.text(Field::Note)?;
        }
        let named = Named::take(object);
        let key = key(object, exchange.live.bounds.key_bytes);
        // What is wrong with the policy is said first.
        let policy = named.resolve(key.as_deref().unwrap_or_default(), exchange)?;
        Ok(Asked {
            policy,
            key: key?,
            cost: object
                .take(Field::Cost)
                .map_or(Ok(Cost::ONE), |object| object.cost(Field::Cost))?,
        })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn key(&self) -> Result<Key<'_>, RequestError> {
        Key::new(&*self.key)
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    pub(super) fn check(&self) -> Check<'_> {
        Check { policy: &self.policy, key: &self.key, cost: self.cost }
    }
}

/// What names a policy.
struct Named<'a> {
    policy: Option<Written<'a>>,
    tier: Option<Written<'a>>,
    limit: Option<Written<'a>>,
}

impl<'a> Named<'a> {
    fn take(object: &mut Object<'a>) -> Self {
        Named {
            policy: object.take(Field::Policy),
            tier: object.take(Field::Tier),
            limit: object.take(Field::Limit),
        }
    }

    fn resolve<'e>(&self, key: &[u8], exchange: &Exchange<'e>) -> Result<Resolved<'e>, Problem> {
        match (&self.policy, &self.limit, &self.tier) {
            (Some(policy), None, tier) => configured(policy, tier.as_ref(), key, exchange),
            (None, Some(limit), None) => inline(limit, exchange),
            (Some(_), Some(_), _) => {
                Err(Problem::bad("policy and limit are both there; leave one of them out")
                    .of(Field::Limit))
            }
            (None, Some(_), Some(tier)) => {
                Err(Problem::bad("limit and tier are both there; only a policy has tiers")
                    .of(Field::Tier)
                    .with_value(&tier.json()))
            }
            (None, None, _) => {
                let named =
                    exchange.live.names_of_policies().map(|name| format!("name one ({name}), or "));
                let named = named.unwrap_or_default();
                let detail = format!("policy is missing; {named}write limit in its place");
                Err(Problem::bad(detail).of(Field::Policy))
            }
        }
    }
}

fn configured<'e>(
    name: &Written<'_>,
    tier: Option<&Written<'_>>,
    key: &[u8],
    exchange: &Exchange<'e>,
) -> Result<Resolved<'e>, Problem> {
    let text = name.text(Field::Policy)?;
    exchange.caller.must_be_for(&text).map_err(|error| error.of(Field::Policy))?;
    let tier_text = tier.map(|tier| tier.text(Field::Tier)).transpose()?;
    let known = exchange.live.policies.resolve(&text, key, tier_text.as_deref());
    known.map(Resolved::Configured).map_err(|error| {
        let field = if matches!(error, ResolveError::Tier(_)) { tier } else { Some(name) };
        let problem = Problem::from(error);
        field.map_or(problem.clone(), |field| problem.with_value(&field.json()))
    })
}

fn inline<'e>(limit: &Written<'_>, exchange: &Exchange<'e>) -> Result<Resolved<'e>, Problem> {
    exchange
        .caller
        .must_have(&[Scope::Operate], "a limit in place of a policy")
        .map_err(|error| error.of(Field::Limit))?;
    let made = exchange.daemon.limiter().limit(&limit.text(Field::Limit)?);
    let made = made.map_err(|error| {
        Problem::bad(error.to_string()).of(Field::Limit).with_value(&limit.json())
    })?;
    exchange.caller.must_be_for(made.name()).map_err(|error| error.of(Field::Limit))?;
    Ok(Resolved::Inline(made))
}

fn key<'a>(object: &mut Object<'a>, most: usize) -> Result<Cow<'a, [u8]>, Problem> {
    let (field, key) = match (object.take(Field::Key), object.take(Field::KeyBase64)) {
        (Some(key), None) => (Field::Key, key.bytes(Field::Key)?),
        (None, Some(key)) => (Field::KeyBase64, key.base64(Field::KeyBase64)?.into()),
        (Some(_), Some(_)) => {
            let detail = "key and key_base64 are both there; leave one of them out";
            return Err(Problem::bad(detail).of(Field::KeyBase64));
        }
        (None, None) => {
            let detail = "key is missing; write who is limited, such as \"user:42\"";
            return Err(Problem::bad(detail).of(Field::Key));
        }
    };
    match key.len() {
        0 => {
            let detail = format!(
                "{} is empty; it must be 1 to {most} bytes that name who is limited",
                field.name()
            );
            Err(Problem::bad(detail).of(field).with_value("\"\""))
        }
        len if len > most => Err(Problem::bad(format!(
            "{} is {len} bytes long; at most {most} are taken, so send a hash of it",
            field.name()
        ))
        .of(field)),
        _ => Ok(key),
    }
}

//! One check as it was asked: under which policy, of which key, at what cost.

use std::borrow::Cow;
use std::ops::Deref;

use tollgate::{Check, Cost, Key, Policy};

use super::exchange::Exchange;
use super::field::Field;
use super::object::Object;
use super::problem::Problem;

/// A check that can be decided, but for what the verb asks of its policy.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    policy: Named<'a>,
    key: Cow<'a, [u8]>,
    cost: Cost,
}

/// A policy that was named, or that limits in its place make.
#[derive(Debug)]
enum Named<'a> {
    Configured(&'a Policy),
    Inline(Policy),
}

impl Deref for Named<'_> {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        match self {
            Named::Configured(it) => it,
            Named::Inline(it) => it,
        }
    }
}

impl<'a> Asked<'a> {
    /// Takes a check's fields out of an object.
    pub(super) fn take(object: &mut Object<'a>, exchange: &Exchange<'a>) -> Result<Self, Problem> {
        if let Some(note) = object.take(Field::Note) {
            note.text(Field::Note)?;
        }
        Ok(Asked {
            policy: policy(object, exchange)?,
            key: key(object, exchange.live.bounds.key_bytes)?,
            cost: object.take(Field::Cost).map_or(Ok(Cost::ONE), |it| it.cost(Field::Cost))?,
        })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn key(&self) -> Result<Key<'_>, Problem> {
        Ok(Key::new(&*self.key)?)
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    pub(super) fn check(&self) -> Check<'_> {
        Check { policy: &self.policy, key: &self.key, cost: self.cost }
    }
}

fn policy<'a>(object: &mut Object<'a>, exchange: &Exchange<'a>) -> Result<Named<'a>, Problem> {
    match (object.take(Field::Policy), object.take(Field::Limit)) {
        (Some(name), None) => {
            let text = name.text(Field::Policy)?;
            let known = exchange.live.policies.get(&text);
            known.map(Named::Configured).map_err(|it| Problem::from(it).with_value(&name.json()))
        }
        (None, Some(limit)) => {
            exchange
                .caller
                .must_operate("a limit in place of a policy")
                .map_err(|it| it.of(Field::Limit))?;
            let made = exchange.daemon.limiter().limit(&limit.text(Field::Limit)?);
            made.map(Named::Inline).map_err(|it| {
                Problem::bad(it.to_string()).of(Field::Limit).with_value(&limit.json())
            })
        }
        (Some(_), Some(_)) => {
            Err(Problem::bad("policy and limit are both there; leave one of them out")
                .of(Field::Limit))
        }
        (None, None) => {
            let named = exchange.live.names_of_policies().map(|it| format!("name one ({it}), or "));
            let detail =
                format!("policy is missing; {}write limit in its place", named.unwrap_or_default());
            Err(Problem::bad(detail).of(Field::Policy))
        }
    }
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

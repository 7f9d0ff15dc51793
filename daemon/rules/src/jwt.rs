//! Claims of the token that a request brings (RFC 7519).

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate::Timestamp;

use super::facts::{KeyError, single};
use super::jwks::KeySet;

/// How the token of a request is read. One that is not valid is none.
#[derive(Clone, Debug)]
pub struct Jwt {
    /// The header that it comes in, with or without `Bearer` before it.
    pub header: HeaderName,
    /// The keys of whom signatures are taken; none if they are not looked at, since a gateway has.
    pub keys: Option<KeySet>,
    /// Who must have issued it, if it matters.
    pub issuer: Option<Box<str>>,
    /// For whom it must be, if it matters.
    pub audience: Option<Box<str>>,
    /// How far the clock of whoever issued it may be off.
    pub leeway: Duration,
}

impl Jwt {
    /// Tokens in `Authorization` that are signed with one of some keys, with a minute's leeway.
    #[must_use]
    pub fn signed(keys: KeySet) -> Self {
        Jwt { keys: Some(keys), ..Jwt::unverified() }
    }

    /// Tokens in `Authorization` whose signatures are not looked at: anybody can write one, unless a
    /// gateway before the daemon lets only valid ones pass.
    #[must_use]
    pub fn unverified() -> Self {
        Jwt {
            header: AUTHORIZATION,
            keys: None,
            issuer: None,
            audience: None,
            leeway: Duration::from_secs(60),
        }
    }

    /// What the token of a request says; nothing if there is none that is valid.
    ///
    /// # Errors
    /// There are several.
    pub(super) fn claims(&self, headers: &HeaderMap, now: Timestamp) -> Result<Claims, KeyError> {
        let lines =
            headers.get_all(&self.header).iter().map(|get_all| Cow::from(get_all.as_bytes()));
        let value = single(lines, &format!("header.{}", self.header))?;
        let claims = value.and_then(|value| {
            let text = str::from_utf8(&value).ok()?;
            self.read(self.token(text)?, now)
        });
        Ok(claims.unwrap_or_default())
    }

    /// The token in the value of its header.
    fn token<'a>(&self, value: &'a str) -> Option<&'a str> {
        match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
            // Another scheme has no token, and a header of one's own needs none.
            Some(_) => None,
            None => (self.header != AUTHORIZATION).then_some(value),
        }
    }

    fn read(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let head: Head = serde_json::from_slice(&decoded(head)?).ok()?;
        // An extension that must be understood is not.
        if head.crit.is_some() || head.alg.eq_ignore_ascii_case("none") {
            return None;
        }
        let is_signed = |keys: &KeySet| {
            let signature = decoded(signature);
            signature.is_some_and(|signature| {
                keys.verify(&head.alg, head.kid.as_deref(), signed, &signature)
            })
        };
        if !self.keys.as_ref().is_none_or(is_signed) {
            return None;
        }
        let claims = Claims(serde_json::from_slice(&decoded(claims)?).ok()?);
        let holds = claims.holds_at(now, self.leeway)?
            && self.issuer.as_deref().is_none_or(|issuer| claims.names("iss", issuer))
            && self.audience.as_deref().is_none_or(|audience| claims.names("aud", audience));
        holds.then_some(claims)
    }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

/// What a token says of its signature.
#[derive(Debug, Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// What a valid token says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// A claim as text, if it is text, a number or a truth. Of the name `a.b` it is that of this name,
    /// else what the claim `a` has under `b`.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match find(&self.0, name)? {
            Value::String(string) => Some(string.into()),
            Value::Number(number) => Some(number.to_string().into()),
            Value::Bool(bool) => Some(bool.to_string().into()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether a claim is a text, or a list in which it is.
    fn names(&self, claim: &str, text: &str) -> bool {
        match self.0.get(claim) {
            Some(Value::String(string)) => string == text,
            Some(Value::Array(all)) => all.iter().any(|x| x.as_str() == Some(text)),
            _ => false,
        }
    }

    /// Whether it has begun and not ended; nothing if what should be a time is none.
    fn holds_at(&self, now: Timestamp, leeway: Duration) -> Option<bool> {
        let now = now.as_micros() / 1_000_000;
        let leeway = leeway.as_secs();
        let has_ended = self.time("exp")?.is_some_and(|time| time.saturating_add(leeway) <= now);
        let has_begun = self.time("nbf")?.is_none_or(|time| time <= now.saturating_add(leeway));
        Some(has_begun && !has_ended)
    }

    /// A time in whole seconds, if it is said; nothing at all if it is no such time.
    fn time(&self, claim: &str) -> Option<Option<u64>> {
        let Some(value) = self.0.get(claim) else { return Some(None) };
        let Value::Number(number) = value else { return None };
        let text = number.to_string();
        let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
        seconds.parse().ok().filter(|_| digits).map(Some)
    }
}

/// A value by its name, at any depth that dots tell. A name that has dots itself goes first.
fn find<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    find(object.get(first)?.as_object()?, rest)
}

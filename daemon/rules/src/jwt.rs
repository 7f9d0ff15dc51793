//! JSON Web Tokens (RFC 7519): validation, and the claims that keys are made of.
//!
//! `ring` verifies the signatures. The `jsonwebtoken` crate is not used: it reads the system clock,
//! whereas a replay validates tokens at the time of the log; it ignores `crit`; and without a
//! feature that adds a second cryptography library, it needs an adapter to `ring` that is longer
//! than the code here.

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

/// The validation of tokens. A request with an invalid token is treated as one without a token.
#[derive(Clone, Debug)]
pub struct Jwt {
    /// The header that carries the token, with or without a leading `Bearer`.
    pub header: HeaderName,
    /// The keys that verify signatures; `None` if the gateway has verified them.
    pub keys: Option<KeySet>,
    /// The required issuer, if any.
    pub issuer: Option<Box<str>>,
    /// The required audience, if any.
    pub audience: Option<Box<str>>,
    /// Whether a token that is verified here must have an expiry.
    pub require_exp: bool,
    /// The tolerated difference between the issuer's clock and ours.
    pub leeway: Duration,
}

impl Jwt {
    /// Tokens in `Authorization`, signed with one of the keys, with a leeway of one minute.
    #[must_use]
    pub fn signed(keys: KeySet) -> Self {
        Jwt { keys: Some(keys), ..Jwt::unverified() }
    }

    /// Tokens in `Authorization`, without verification of their signatures. Anyone can forge such a
    /// token, unless a gateway in front of the daemon rejects invalid ones.
    #[must_use]
    pub fn unverified() -> Self {
        Jwt {
            header: AUTHORIZATION,
            keys: None,
            issuer: None,
            audience: None,
            require_exp: true,
            leeway: Duration::from_secs(60),
        }
    }

    /// The claims of a request's token; empty without a valid token.
    ///
    /// # Errors
    /// The request has several different tokens.
    pub(super) fn claims(&self, headers: &HeaderMap, now: Timestamp) -> Result<Claims, KeyError> {
        let lines = headers.get_all(&self.header).iter().map(|line| Cow::from(line.as_bytes()));
        let value = single(lines, &format!("header.{}", self.header))?;
        let claims = value.and_then(|value| {
            let text = str::from_utf8(&value).ok()?;
            self.read(self.token(text)?, now)
        });
        Ok(claims.unwrap_or_default())
    }

    /// The token in the value of the header.
    fn token<'a>(&self, value: &'a str) -> Option<&'a str> {
        match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
            // Other schemes carry no token; a custom header needs no scheme.
            Some(_) => None,
            None => (self.header != AUTHORIZATION).then_some(value),
        }
    }

    fn read(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let head: Header = serde_json::from_slice(&decoded(head)?).ok()?;
        // No critical extension is supported (RFC 7515, section 4.1.11).
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
        let is_valid = claims.is_valid_at(now, self)?
            && self.issuer.as_deref().is_none_or(|issuer| claims.names("iss", issuer))
            && self.audience.as_deref().is_none_or(|audience| claims.names("aud", audience));
        is_valid.then_some(claims)
    }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

/// The header of a token.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// The claims of a valid token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// A claim as text, if it is a string, a number or a Boolean. The name `a.b` stands for the
    /// claim of this name, or else for the member `b` of the claim `a`.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match find(&self.0, name)? {
            Value::String(string) => Some(string.into()),
            Value::Number(number) => Some(number.to_string().into()),
            Value::Bool(bool) => Some(bool.to_string().into()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether a claim is this text or a list that contains it.
    fn names(&self, claim: &str, text: &str) -> bool {
        match self.0.get(claim) {
            Some(Value::String(string)) => string == text,
            Some(Value::Array(all)) => all.iter().any(|x| x.as_str() == Some(text)),
            _ => false,
        }
    }

    /// Whether the token is valid at a time; `None` if `exp` or `nbf` is not a time.
    fn is_valid_at(&self, now: Timestamp, jwt: &Jwt) -> Option<bool> {
        let now = now.as_micros() / 1_000_000;
        let leeway = jwt.leeway.as_secs();
        let has_ended = match self.time("exp")? {
            Some(time) => time.saturating_add(leeway) <= now,
            // The gateway decides about a token that it has verified.
            None => jwt.require_exp && jwt.keys.is_some(),
        };
        let has_begun = self.time("nbf")?.is_none_or(|time| time <= now.saturating_add(leeway));
        Some(has_begun && !has_ended)
    }

    /// A time in whole seconds: `Some(None)` if the claim is missing, `None` if it is not a time.
    fn time(&self, claim: &str) -> Option<Option<u64>> {
        let Some(value) = self.0.get(claim) else { return Some(None) };
        let Value::Number(number) = value else { return None };
        let text = number.to_string();
        let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
        seconds.parse().ok().filter(|_| digits).map(Some)
    }
}

/// The value with a name, in which dots lead into nested objects. A name that itself contains dots
/// takes precedence.
fn find<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    find(object.get(first)?.as_object()?, rest)
}

//! Formats of text values.

use std::net::IpAddr;

use tollgate::{KeyPattern, Limiter, NotationError, Policy, Tiers, parse_duration};
use tollgate_rules::{HeaderMatcher, HostPattern, MethodName, Networks, PathPattern, Template};

use super::scalar::Value;
use crate::read::track::TimelineSpec;

/// A format of text values: its parser, and a pattern for editors.
#[derive(Debug)]
pub(crate) struct Format {
    /// The name of the format in the reference.
    pub(crate) name: &'static str,
    pub(crate) example: &'static str,
    /// Parses a text; the error states the remedy.
    pub(super) read: fn(&str) -> Result<Value, String>,
    /// A regular expression that every valid text matches, if there is a useful one.
    pub(crate) pattern: Option<&'static str>,
    /// Whether messages must not show the text, because it may contain a secret.
    pub(crate) hides: bool,
}

impl Format {
    const fn new(
        name: &'static str,
        example: &'static str,
        read: fn(&str) -> Result<Value, String>,
    ) -> Self {
        Format { name, example, read, pattern: None, hides: false }
    }

    const fn pattern(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    const fn hidden(mut self) -> Self {
        self.hides = true;
        self
    }
}

pub(super) static NAMESPACE: Format = Format::new("name", "shop", word).pattern(WORD);

pub(super) static STORE_URL: Format =
    Format::new("URL", "redis://127.0.0.1:6379", |text| match Limiter::check_url(text) {
        Ok(()) => Ok(Value::Url(text.to_owned())),
        Err(error) => Err(error.to_string()),
    })
    .pattern("^(memory$|(redis|rediss|valkey|valkeys)([+][a-z]+)?://)")
    .hidden();

// `Policy::new` and `Policies` report invalid names.
pub(super) static POLICY_NAME: Format =
    Format::new("name", "api", text).pattern("^[A-Za-z][A-Za-z0-9_.-]{0,127}$");

pub(super) static LIMIT: Format = Format::new("limit", "\"10/s burst 20\"", |text| {
    text.parse().map(Value::Limits).map_err(|error: NotationError| error.to_string())
});

pub(super) static KEY: Format = Format::new("key", "\"health-check\"", |key| match key {
    "" | "*" => Err("expected a key, or a prefix followed by *, as in bot-*".to_owned()),
    _ => text(key),
});

pub(super) static OVERRIDDEN: Format = Format::new("key", "vip", |key| {
    KeyPattern::parse(key).map_err(|error| error.to_string())?;
    text(key)
});

pub(super) static TIER: Format = Format::new("name", "pro", |name| {
    Tiers::new().add(name, "unlimited").map_err(|error| error.to_string())?;
    text(name)
})
.pattern("^\\S{1,128}$");

pub(super) static TIMELINE: Format =
    Format::new("timeline", "24h by 1m", |text| timeline(text).map(Value::Timeline));

fn timeline(text: &str) -> Result<TimelineSpec, String> {
    const MAX: u64 = TimelineSpec::MAX_INTERVALS;
    let Some((duration, interval)) = text.split_once(" by ") else {
        return Err("expected a duration and an interval, as in 24h by 1m".to_owned());
    };
    let parse = |text| parse_duration(text).map_err(|error| error.to_string());
    let (duration, interval) = (parse(duration)?, parse(interval)?);
    let is_whole = interval.get() > 0 && interval.get().is_multiple_of(1_000_000);
    if !is_whole {
        return Err("expected an interval of whole seconds, as in 24h by 1m".to_owned());
    }
    if !duration.get().is_multiple_of(interval.get()) {
        return Err(format!(
            "{duration}s is not a multiple of the interval of {interval}s; expected one, as in 24h \
             by 1m"
        ));
    }
    match duration.get() / interval.get() {
        intervals @ 2..=MAX => {
            let intervals = u16::try_from(intervals).map_err(|error| error.to_string())?;
            Ok(TimelineSpec { interval, intervals })
        }
        intervals => Err(format!(
            "has {intervals} intervals; expected 2 to {MAX}, as in 24h by 1m: {}",
            if intervals < 2 { "shorten the interval" } else { "lengthen the interval" }
        )),
    }
}

pub(super) static TOKEN_NAME: Format = Format::new("name", "gateway", word).pattern(WORD);

/// The shortest token, in bytes: shorter ones can be guessed.
pub const MIN_TOKEN_BYTES: usize = 16;
/// The longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 1_024;

/// The message about a token of this length, which is too short.
#[must_use]
pub fn short_token(len: usize) -> String {
    format!(
        "the token has {len} bytes, fewer than {MIN_TOKEN_BYTES}; generate one with openssl rand \
         -hex 16"
    )
}

pub(super) static TOKEN: Format = Format::new("token", "\"…\"", |token| match token {
    // The mask in the output of `config print` must not become a guessable token.
    "***" => {
        Err("*** is a mask for a hidden token; write the token itself, or use token_file"
            .to_owned())
    }
    _ if token.len() > MAX_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
        Err("expected 16 to 1024 ASCII characters without spaces".to_owned())
    }
    _ if token.len() < MIN_TOKEN_BYTES => Err(short_token(token.len())),
    _ => text(token),
})
.pattern("^[!-~]{16,1024}$")
.hidden();

// Hidden in messages, because it may be the token itself by mistake.
pub(super) static TOKEN_SHA256: Format =
    Format::new("SHA-256 digest", "\"9f86…\"", |text| match sha256(text) {
        Some(digest) => Ok(Value::Sha256(digest)),
        None => Err("expected the SHA-256 digest of the token, 64 hexadecimal digits; run printf \
                     %s TOKEN | sha256sum"
            .to_owned()),
    })
    .pattern("^[0-9A-Fa-f]{64}$")
    .hidden();

pub(super) static CERTIFICATE_NAME: Format =
    Format::new("name of a certificate", "spiffe://example.org/gateway", |name| {
        let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        let is_dns_name = !name.contains(['*', '/', '@']) && name.parse::<IpAddr>().is_err();
        let is_uri = name.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && !rest.is_empty()
                && name.parse::<IpAddr>().is_err()
        });
        if is_plain && (is_uri || is_dns_name && !name.contains(':')) {
            return text(name);
        }
        Err("expected a DNS name or a URI among the certificate's subject alternative names, such \
             as gateway.example.org or spiffe://example.org/gateway"
            .to_owned())
    })
    .pattern("^[!-~]+$");

fn sha256(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16).map(u8::try_from);
        let (high, low) = (nibble(*digits.first()?)?.ok()?, nibble(*digits.last()?)?.ok()?);
        *byte = high << 4 | low;
    }
    Some(digest)
}

pub(super) static POLICY_PATTERN: Format = Format::new("name of a policy", "\"*\"", |pattern| {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    if pattern == "*" || Policy::is_name(name) {
        return text(pattern);
    }
    Err("expected the name of a policy, a prefix followed by *, as in api-*, or \"*\" for all \
         policies"
        .to_owned())
})
.pattern("^([*]|[A-Za-z][A-Za-z0-9_.-]*[*]?)$");

pub(super) static PROXY: Format =
    Format::new("network", "10.0.0.0/8", |text| Networks::single(text).map(Value::Networks))
        .pattern("^(unix|[0-9.]+(/[0-9]+)?|[0-9A-Fa-f:.]+(/[0-9]+)?)$");

pub(super) static HEADER_NAME: Format = Format::new("header", "x-api-key", |text| {
    HeaderMatcher::new(text, "*").map(|matcher| Value::HeaderName(matcher.name().clone()))
})
.pattern(HTTP_TOKEN);

// The reader combines the value with its name.
pub(super) static HEADER_VALUE: Format = Format::new("value", "pro*", |value| {
    HeaderMatcher::new("x", value)?;
    text(value)
});

pub(super) static METHOD: Format =
    Format::new("method", "GET", |text| MethodName::parse(text).map(Value::Method))
        .pattern(HTTP_TOKEN);

pub(super) static PATH: Format =
    Format::new("path", "/api/**", |text| PathPattern::parse(text).map(Value::PathPattern))
        .pattern("^/");

pub(super) static HOST: Format =
    Format::new("host", "example.com", |text| HostPattern::parse(text).map(Value::Host));

pub(super) static TEMPLATE: Format =
    Format::new("template", "\"{ip}\"", |text| Template::parse(text).map(Value::Template));

pub(super) static SERVER: Format =
    Format::new("address", "10.0.0.5:6379", |address| match address.rsplit_once(':') {
        Some((host, port)) if is_host(host) && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            text(address)
        }
        _ => Err("expected HOST:PORT, as in 10.0.0.5:6379 or [::1]:6379".to_owned()),
    })
    .pattern(":[0-9]{1,5}$");

/// Whether an address can begin with this: an IPv6 address needs brackets.
fn is_host(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    address.map_or(!host.is_empty() && !host.contains(':'), |address| !address.is_empty())
}

/// A token of HTTP (RFC 9110, section 5.6.2).
const HTTP_TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
const WORD: &str = "^[A-Za-z0-9_.-]{1,64}$";

fn text(text: &str) -> Result<Value, String> {
    Ok(Value::Text(text.to_owned()))
}

fn word(word: &str) -> Result<Value, String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=64).contains(&word.len()) && word.bytes().all(inner) {
        return text(word);
    }
    Err("expected 1 to 64 letters, digits, '_', '-' and '.'".to_owned())
}

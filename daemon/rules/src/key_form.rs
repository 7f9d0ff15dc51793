//! The keys that rules can make, so that a key or a pattern that no request can have is reported.

use std::net::IpAddr;

use tollgate::{KeyPattern, KeyPatternKind};
use tollgate_headers::Ipv6Prefix;

use super::source::Source;
use super::template::{Piece, Template};
use super::{RuleCheck, Rules};

/// The most forms of one template, and the most rules, that a message lists.
const MAX_LISTED: usize = 4;

/// The rules that use a policy, and the keys that they can make.
#[derive(Clone, Debug)]
pub struct KeyForms<'a> {
    /// The index of each rule, with its check.
    checks: Vec<(usize, &'a RuleCheck)>,
    ipv6_prefix: Ipv6Prefix,
}

impl Rules {
    /// The keys that rules make for a policy; absent if no rule uses it.
    #[must_use]
    pub fn key_forms(&self, policy: &str, ipv6_prefix: Ipv6Prefix) -> Option<KeyForms<'_>> {
        let checks = self.rules.iter().enumerate().flat_map(|(index, rule)| {
            rule.checks.iter().filter(|check| *check.policy == *policy).map(move |x| (index, x))
        });
        let checks: Vec<_> = checks.collect();
        (!checks.is_empty()).then_some(KeyForms { checks, ipv6_prefix })
    }
}

impl KeyForms<'_> {
    /// Whether a request can have a key that matches.
    #[must_use]
    pub fn can_match(&self, keys: KeyPatternKind<'_>) -> bool {
        self.checks.iter().any(|(_, check)| check.key.can_match(keys, self.ipv6_prefix))
    }

    /// The key that was probably meant: a value in the place that a template has for it.
    #[must_use]
    pub fn suggest(&self, written: &str) -> Option<String> {
        let forms = self.checks.iter().flat_map(|(_, check)| check.key.forms());
        let candidates = forms.filter_map(|form| {
            let (before, after) = form.split_once(PLACE)?;
            Some(format!("{before}{written}{after}")).filter(|text| !text.contains(PLACE))
        });
        let mut possible: Vec<_> = candidates
            .filter(|text| KeyPattern::parse(text).is_ok_and(|key| self.can_match(key.kind())))
            .collect();
        // Only an address can be in the place of one, but an address can be in other places.
        possible.sort_by_key(|text| !text.contains("ip="));
        possible.into_iter().next()
    }

    /// Whether a rule can select a tier.
    #[must_use]
    pub fn can_select(&self, tier: &str) -> bool {
        let key = KeyPatternKind::Exact(tier.as_bytes());
        let mut tiers = self.checks.iter().filter_map(|(_, check)| check.tier.as_ref());
        tiers.any(|template| template.can_match(key, self.ipv6_prefix))
    }

    /// The rules, such as `rules[0], rules[2]`.
    #[must_use]
    pub fn rules(&self) -> String {
        let mut indices: Vec<_> = self.checks.iter().map(|(index, _)| *index).collect();
        indices.dedup();
        listed(indices.into_iter().map(|index| format!("rules[{index}]")), ", ")
    }
}

/// Describes the keys, such as `keys of rules[0] look like "header.x-api-key=…" or "ip=…"`.
impl std::fmt::Display for KeyForms<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut forms: Vec<_> = Vec::new();
        for form in self.checks.iter().flat_map(|(_, check)| check.key.forms()) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        let forms = forms.into_iter().map(|form| format!("{form:?}"));
        write!(f, "keys of {} look like {}", self.rules(), listed(forms, " or "))
    }
}

fn listed(texts: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let is_cut = texts.len() > MAX_LISTED;
    let mut texts: Vec<_> = texts.take(MAX_LISTED).collect();
    if is_cut {
        texts.push("…".to_owned());
    }
    texts.join(separator)
}

/// The place of a value in a form.
const PLACE: &str = "…";

impl Template {
    /// The forms of the keys, such as `header.x-api-key=…` and `ip=…`, or `user:{jwt.sub}`: where
    /// the key contains the name of the source, `…` is the place of its value.
    #[must_use]
    pub fn forms(&self) -> Vec<String> {
        let mut forms = vec![String::new()];
        for piece in self.pieces() {
            let endings: Vec<String> = match piece {
                Piece::Text(text) => vec![text.to_string()],
                Piece::Value(sources) if sources.len() == 1 => vec![piece.to_string()],
                Piece::Value(sources) => {
                    sources.iter().map(|source| format!("{source}={PLACE}")).collect()
                }
            };
            let pairs = forms.iter().flat_map(|form| endings.iter().map(move |x| (form, x)));
            forms =
                pairs.take(MAX_LISTED).map(|(form, ending)| format!("{form}{ending}")).collect();
        }
        forms
    }

    /// Whether a request can have a key that matches.
    #[must_use]
    pub fn can_match(&self, keys: KeyPatternKind<'_>, ipv6_prefix: Ipv6Prefix) -> bool {
        let template = Matcher { escaped: self.escaped(), ipv6_prefix };
        match keys {
            KeyPatternKind::Exact(key) => template.fits(self.pieces(), key, false),
            KeyPatternKind::Prefix(prefix) => template.fits(self.pieces(), prefix, true),
            // `ip=` may precede the address.
            _ => match self.pieces() {
                [Piece::Value(sources)] | [Piece::Text(_), Piece::Value(sources)]
                    if self.text_before() == "" || self.text_before() == "ip=" =>
                {
                    let is_plain = sources.len() == 1;
                    let has_tag = !self.text_before().is_empty();
                    sources.iter().any(|source| match source {
                        Source::Ip => is_plain || !has_tag,
                        Source::Path | Source::Method => false,
                        _ => is_plain,
                    })
                }
                [Piece::Text(text)] => {
                    text.strip_prefix("ip=").unwrap_or(text).parse::<IpAddr>().is_ok()
                }
                _ => false,
            },
        }
    }

    /// The text before the first placeholder.
    fn text_before(&self) -> &str {
        match self.pieces() {
            [Piece::Text(text), ..] => text,
            _ => "",
        }
    }
}

/// Matches keys with the pieces of a template.
#[derive(Clone, Copy)]
struct Matcher<'a> {
    escaped: &'a [u8],
    ipv6_prefix: Ipv6Prefix,
}

impl Matcher<'_> {
    /// Whether the pieces can make `key`, or with `is_prefix` a key that begins with it.
    fn fits(self, pieces: &[Piece], key: &[u8], is_prefix: bool) -> bool {
        if is_prefix && key.is_empty() {
            return true;
        }
        let Some((piece, rest)) = pieces.split_first() else { return key.is_empty() };
        match piece {
            Piece::Text(text) => self
                .fits_after(text.as_bytes(), key, is_prefix, |key| self.fits(rest, key, is_prefix)),
            Piece::Value(sources) => sources.iter().any(|source| {
                let tag = if sources.len() > 1 { format!("{source}=") } else { String::new() };
                self.fits_after(tag.as_bytes(), key, is_prefix, |key| {
                    self.fits_value(source, rest, key, is_prefix)
                })
            }),
        }
    }

    /// Whether `key` begins with `text`, and the rest of it fits.
    fn fits_after(
        self,
        text: &[u8],
        key: &[u8],
        is_prefix: bool,
        rest: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        match key.strip_prefix(text) {
            Some(key) => rest(key),
            None => is_prefix && text.starts_with(key),
        }
    }

    /// Whether `key` is a value of the source, followed by the other pieces.
    fn fits_value(self, source: &Source, rest: &[Piece], key: &[u8], is_prefix: bool) -> bool {
        if is_prefix {
            // The prefix may end within the three bytes of an escape.
            let last = key.len().saturating_sub(2);
            let escape = key.iter().skip(last).position(|x| *x == b'%' && !self.escaped.is_empty());
            let (whole, _) = key.split_at(escape.map_or(key.len(), |at| last + at));
            let value = self.unescape(whole);
            if value.is_some_and(|value| value.is_empty() || source.can_be(&value, None)) {
                return true;
            }
        }
        // A value ends at the first byte that is escaped in values: it is part of a boundary.
        let is_boundary = |byte: &u8| *byte != b'%' && self.escaped.contains(byte);
        let longest = key.iter().position(is_boundary).unwrap_or(key.len());
        (1..=longest).any(|end| {
            let (value, after) = key.split_at(end);
            self.fits(rest, after, is_prefix)
                && self
                    .unescape(value)
                    .is_some_and(|value| source.can_be(&value, Some(self.ipv6_prefix)))
        })
    }

    /// The value that a template writes as these bytes.
    fn unescape(self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.escaped.is_empty() {
            return Some(bytes.to_vec());
        }
        let mut value = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            let byte = match (byte, after) {
                (b'%', [high, low, after @ ..]) => {
                    rest = after;
                    let digits = [*high, *low];
                    let digits = str::from_utf8(&digits).ok()?;
                    let is_upper = !digits.bytes().any(|byte| byte.is_ascii_lowercase());
                    let byte = u8::from_str_radix(digits, 16).ok()?;
                    (is_upper && self.escaped.contains(&byte)).then_some(byte)?
                }
                (byte, _) if self.escaped.contains(byte) => return None,
                (byte, _) => *byte,
            };
            value.push(byte);
        }
        Some(value)
    }
}

impl Source {
    /// Whether a request can have this value, or without a length of IPv6 networks one that begins
    /// with it.
    fn can_be(&self, value: &[u8], ipv6_prefix: Option<Ipv6Prefix>) -> bool {
        match (self, ipv6_prefix) {
            (Source::Ip, Some(ipv6_prefix)) => {
                let text = str::from_utf8(value).unwrap_or_default();
                let address = text.split_once('/').map_or(text, |(address, _)| address);
                address.parse().is_ok_and(|address| ipv6_prefix.key(address) == text)
            }
            (Source::Ip, None) => value
                .iter()
                .all(|x| x.is_ascii_digit() || matches!(x, b'a'..=b'f' | b'.' | b':' | b'/')),
            (Source::Host, _) => !value.iter().any(u8::is_ascii_uppercase),
            (Source::Method, _) => !value.iter().any(u8::is_ascii_lowercase),
            (Source::Path, _) => value.starts_with(b"/") || value == b"*",
            _ => true,
        }
    }
}

//! Conditions on request headers.

use std::fmt;

use http::header::{HeaderMap, HeaderName};

/// A condition on a header: `x-plan: pro` requires this value, `x-plan: pro*` this prefix and
/// `x-plan: *` any value. One matching line of the header is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatcher {
    name: HeaderName,
    value: ExpectedValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ExpectedValue {
    Exact(Box<str>),
    Prefix(Box<str>),
}

impl HeaderMatcher {
    /// The name of the header.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Parses `NAME: VALUE`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .ok_or("expected a header and its value, such as x-plan: pro or x-plan: *")?;
        HeaderMatcher::new(name.trim(), value.trim())
    }

    /// A condition on the header of this name.
    ///
    /// # Errors
    /// The name is not a header name, or no header can have the value; the error states the remedy.
    pub fn new(name: &str, value: &str) -> Result<Self, String> {
        let name = header_name(name)?;
        let (text, is_prefix) = match value.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (value, false),
        };
        if text.contains('*') {
            return Err("* is allowed only at the end of a value".to_owned());
        }
        if text.is_empty() && !is_prefix {
            return Err("expected a value, or * for any value".to_owned());
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err("a header value cannot begin or end with whitespace or contain control \
                        characters"
                .to_owned());
        }
        let value = if is_prefix {
            ExpectedValue::Prefix(text.into())
        } else {
            ExpectedValue::Exact(text.into())
        };
        Ok(HeaderMatcher { name, value })
    }

    pub(super) fn matches(&self, headers: &HeaderMap) -> bool {
        headers.get_all(&self.name).iter().any(|line| match &self.value {
            ExpectedValue::Exact(text) => line.as_bytes() == text.as_bytes(),
            ExpectedValue::Prefix(text) => line.as_bytes().starts_with(text.as_bytes()),
        })
    }
}

/// Parses the name of a header.
pub(super) fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::try_from(text).map_err(|_| "expected a header name such as x-api-key".into())
}

impl fmt::Display for HeaderMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            ExpectedValue::Exact(text) => write!(f, "{}: {text}", self.name),
            ExpectedValue::Prefix(text) => write!(f, "{}: {text}*", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::*;

    #[test]
    fn matches_exact_values_prefixes_and_presence() {
        for (test, lines, matches) in [
            ("x-plan: pro", &["pro"][..], true),
            ("X-Plan:pro", &["pro"], true),
            ("x-plan: pro", &["Pro"], false),
            ("x-plan: pro", &["pro2"], false),
            ("x-plan: pro", &["free", "pro"], true),
            ("x-plan: pro", &[], false),
            ("x-plan: pro*", &["pro2"], true),
            ("x-plan: pro*", &["pr"], false),
            ("x-plan: *", &[""], true),
            ("x-plan: *", &[], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-plan", HeaderValue::from_static(line));
            }
            let read = HeaderMatcher::parse(test).unwrap();
            assert_eq!(HeaderMatcher::parse(&read.to_string()).unwrap(), read);
            assert_eq!(read.matches(&headers), matches, "{test} {lines:?}");
        }
    }

    #[test]
    fn values_that_no_header_can_have_are_rejected() {
        for (text, remedy) in [
            ("x-plan", "expected a header and its value, such as x-plan: pro or x-plan: *"),
            ("x plan: pro", "expected a header name such as x-api-key"),
            ("x-plan:", "expected a value, or * for any value"),
            ("x-plan: *pro", "* is allowed only at the end of a value"),
            (
                "x-plan: a\tb",
                "a header value cannot begin or end with whitespace or contain control characters",
            ),
        ] {
            assert_eq!(HeaderMatcher::parse(text).unwrap_err(), remedy, "{text}");
        }
    }
}

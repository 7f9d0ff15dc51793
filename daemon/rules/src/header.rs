//! What a rule wants of a header.

use std::fmt;

use http::header::{HeaderMap, HeaderName};

/// What a rule wants of a header: `x-plan: pro` that it says this, `x-plan: pro*` that it begins so,
/// `x-plan: *` that it is there. One line of it that does is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatcher {
    name: HeaderName,
    value: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Exactly(Box<str>),
    Prefix(Box<str>),
}

impl HeaderMatcher {
    /// Which header it looks at.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Reads `NAME: VALUE`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .ok_or("write a header and its value, such as x-plan: pro, or x-plan: *")?;
        HeaderMatcher::new(name.trim(), value.trim())
    }

    /// What is wanted of the header of this name.
    ///
    /// # Errors
    /// It is no name of a header, or the value is one that no header has; the error says what to
    /// write.
    pub fn new(name: &str, value: &str) -> Result<Self, String> {
        let name = header_name(name)?;
        let (text, is_prefix) = match value.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (value, false),
        };
        if text.contains('*') {
            return Err("write * at the end only".to_owned());
        }
        if text.is_empty() && !is_prefix {
            return Err("write the value, or * if it is enough that the header is there".to_owned());
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err("write the value without space around it or control characters".to_owned());
        }
        let value =
            if is_prefix { Wanted::Prefix(text.into()) } else { Wanted::Exactly(text.into()) };
        Ok(HeaderMatcher { name, value })
    }

    pub(super) fn matches(&self, headers: &HeaderMap) -> bool {
        headers.get_all(&self.name).iter().any(|get_all| match &self.value {
            Wanted::Exactly(text) => get_all.as_bytes() == text.as_bytes(),
            Wanted::Prefix(text) => get_all.as_bytes().starts_with(text.as_bytes()),
        })
    }
}

/// Reads the name of a header.
pub(super) fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::try_from(text).map_err(|_| "write the name of a header, such as x-api-key".into())
}

impl fmt::Display for HeaderMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Wanted::Exactly(text) => write!(f, "{}: {text}", self.name),
            Wanted::Prefix(text) => write!(f, "{}: {text}*", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::*;

    #[test]
    fn a_header_says_what_is_wanted() {
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
    fn what_no_header_has_is_refused() {
        for (text, remedy) in [
            ("x-plan", "write a header and its value, such as x-plan: pro, or x-plan: *"),
            ("x plan: pro", "write the name of a header, such as x-api-key"),
            ("x-plan:", "write the value, or * if it is enough that the header is there"),
            ("x-plan: *pro", "write * at the end only"),
            ("x-plan: a\tb", "write the value without space around it or control characters"),
        ] {
            assert_eq!(HeaderMatcher::parse(text).unwrap_err(), remedy, "{text}");
        }
    }
}

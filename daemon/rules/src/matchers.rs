//! Conditions on the method, the host and the headers of a request.

use std::borrow::Cow;

use http::header::{HeaderMap, HeaderName};

/// The name of a method, case-insensitive. `GET` also matches `HEAD`, which costs a backend as
/// much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName(Box<str>);

impl MethodName {
    /// Parses a name such as `POST`.
    ///
    /// # Errors
    /// The text is not a method; the error states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        match http::Method::from_bytes(upper.as_bytes()) {
            Ok(method) => Ok(MethodName(method.as_str().into())),
            Err(_) => Err("expected a method such as GET or POST; omit the field to match all \
                           methods"
                .to_owned()),
        }
    }

    pub(super) fn matches(&self, method: &str) -> bool {
        let is_head = || &*self.0 == "GET" && method.eq_ignore_ascii_case("HEAD");
        method.eq_ignore_ascii_case(&self.0) || is_head()
    }
}

/// The canonical form of a host: lower case, without port and trailing dot.
pub(super) fn canonical(host: &str) -> Cow<'_, str> {
    let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(host.to_ascii_lowercase());
    }
    Cow::Borrowed(host)
}

/// A host, or with a leading `*.` all of its subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: Box<str>,
    is_subdomain_pattern: bool,
}

impl HostPattern {
    /// Parses `example.com` or `*.example.com`.
    ///
    /// # Errors
    /// The text is not a host; the error states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, is_subdomain_pattern) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let bare = canonical(name);
        let is_part = |c: char| !c.is_whitespace() && !"*/?#@%[]".contains(c);
        if bare.is_empty() || name.contains('/') || !bare.chars().all(is_part) {
            return Err("expected a host such as example.com, or *.example.com for all of its \
                        subdomains"
                .to_owned());
        }
        if !name.starts_with('[') && name.contains(':') {
            return Err(format!("hosts are matched without a port; write {bare}"));
        }
        Ok(HostPattern { name: bare.into(), is_subdomain_pattern })
    }

    /// Whether a host in lower case and without a final dot matches.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        if !self.is_subdomain_pattern {
            return host == &*self.name;
        }
        let subdomain = host.strip_suffix(&*self.name).and_then(|host| host.strip_suffix('.'));
        subdomain.is_some_and(|subdomain| !subdomain.is_empty())
    }
}

/// A condition on a header: `x-plan: pro` requires this value, `x-plan: pro*` this prefix and
/// `x-plan: *` any value. One matching line of the header is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatcher {
    name: HeaderName,
    /// The required value, or its prefix.
    value: Box<str>,
    is_prefix: bool,
}

impl HeaderMatcher {
    /// The name of the header.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
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
        Ok(HeaderMatcher { name, value: text.into(), is_prefix })
    }

    pub(super) fn matches(&self, headers: &HeaderMap) -> bool {
        let value = self.value.as_bytes();
        headers.get_all(&self.name).iter().any(|line| match self.is_prefix {
            true => line.as_bytes().starts_with(value),
            false => line.as_bytes() == value,
        })
    }
}

/// Parses the name of a header.
pub(super) fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::try_from(text).map_err(|_| "expected a header name such as x-api-key".into())
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::*;

    #[test]
    fn get_matches_head_and_case_is_ignored() {
        for (name, method, matches) in [
            ("GET", "GET", true),
            ("get", "GET", true),
            ("GET", "get", true),
            ("GET", "HEAD", true),
            ("HEAD", "GET", false),
            ("POST", "GET", false),
            ("PURGE", "PURGE", true),
        ] {
            let read = MethodName::parse(name).unwrap();
            assert_eq!(read.matches(method), matches, "{name} {method}");
        }
        for text in ["", "GET POST", "GET,POST", "ü"] {
            let remedy = "expected a method such as GET or POST; omit the field to match all \
                          methods";
            assert_eq!(MethodName::parse(text).unwrap_err(), remedy, "{text}");
        }
    }

    #[test]
    fn hosts_match_without_port_and_case() {
        for (pattern, matching, others) in [
            (
                "example.com",
                "example.com Example.COM example.com:8080 example.com.",
                "www.example.com example.com.evil example.org com",
            ),
            (
                "*.Example.com",
                "a.example.com A.B.example.com:1",
                "example.com .example.com aexample.com",
            ),
            ("[2001:DB8::1]", "[2001:db8::1] [2001:db8::1]:80", "[2001:db8::2] 2001:db8::1"),
            ("10.0.0.1", "10.0.0.1:80", "10.0.0.2"),
        ] {
            let matcher = HostPattern::parse(pattern).unwrap();
            for (hosts, expected) in [(matching, true), (others, false)] {
                for host in hosts.split(' ') {
                    assert_eq!(matcher.matches(&canonical(host)), expected, "{pattern} {host}");
                }
            }
        }
    }

    #[test]
    fn invalid_hosts_are_rejected() {
        let usual =
            "expected a host such as example.com, or *.example.com for all of its subdomains";
        for (text, remedy) in [
            ("", usual),
            ("*", usual),
            ("*.", usual),
            ("a.*.com", usual),
            ("http://a", usual),
            ("a/b", usual),
            ("a.com:80", "hosts are matched without a port; write a.com"),
        ] {
            assert_eq!(HostPattern::parse(text).unwrap_err(), remedy, "{text}");
        }
    }

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
            let (name, value) = test.split_once(':').unwrap();
            let read = HeaderMatcher::new(name, value.trim()).unwrap();
            assert_eq!(read.matches(&headers), matches, "{test} {lines:?}");
        }
    }

    #[test]
    fn values_that_no_header_can_have_are_rejected() {
        for (name, value, remedy) in [
            ("x plan", "pro", "expected a header name such as x-api-key"),
            ("x-plan", "", "expected a value, or * for any value"),
            ("x-plan", "*pro", "* is allowed only at the end of a value"),
            (
                "x-plan",
                "a\tb",
                "a header value cannot begin or end with whitespace or contain control characters",
            ),
        ] {
            assert_eq!(HeaderMatcher::new(name, value).unwrap_err(), remedy, "{name}: {value}");
        }
    }
}

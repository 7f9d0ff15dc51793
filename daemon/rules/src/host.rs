//! Hosts and host patterns.

use std::borrow::Cow;
use std::fmt;

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

    /// Whether a host in [`canonical`] form matches.
    pub(super) fn matches(&self, host: &str) -> bool {
        if !self.is_subdomain_pattern {
            return host == &*self.name;
        }
        let subdomain = host.strip_suffix(&*self.name).and_then(|host| host.strip_suffix('.'));
        subdomain.is_some_and(|subdomain| !subdomain.is_empty())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_subdomain_pattern { "*." } else { "" })?;
        // An IPv6 address is written in brackets.
        if self.name.contains(':') { write!(f, "[{}]", self.name) } else { f.write_str(&self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let pattern = HostPattern::parse(pattern).unwrap();
            assert_eq!(HostPattern::parse(&pattern.to_string()).unwrap(), pattern);
            for (hosts, expected) in [(matching, true), (others, false)] {
                for host in hosts.split(' ') {
                    assert_eq!(pattern.matches(&canonical(host)), expected, "{pattern} {host}");
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
}

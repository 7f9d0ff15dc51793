//! Hosts, and patterns of them.

use std::borrow::Cow;
use std::fmt;

/// A host as it is compared: in lower case, without its port or the dot at its end.
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

/// A host, or with `*.` before it all that are below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: Box<str>,
    below: bool,
}

impl HostPattern {
    /// Reads `example.com` or `*.example.com`.
    ///
    /// # Errors
    /// It is no host; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let bare = canonical(name);
        let is_part = |c: char| !c.is_whitespace() && !"*/?#@%[]".contains(c);
        if bare.is_empty() || name.contains('/') || !bare.chars().all(is_part) {
            return Err(
                "write a host such as example.com, or *.example.com for all below it".into()
            );
        }
        if !name.starts_with('[') && name.contains(':') {
            return Err(format!("write the host without its port, as {bare}"));
        }
        Ok(HostPattern { name: bare.into(), below })
    }

    /// Whether a host, as [`canonical`] spells it, is one of them.
    pub(super) fn matches(&self, host: &str) -> bool {
        if !self.below {
            return host == &*self.name;
        }
        let above = host.strip_suffix(&*self.name).and_then(|host| host.strip_suffix('.'));
        above.is_some_and(|above| !above.is_empty())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.below { "*." } else { "" })?;
        // An address with colons stands in brackets.
        if self.name.contains(':') { write!(f, "[{}]", self.name) } else { f.write_str(&self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_compared_without_port_and_case() {
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
    fn what_is_no_host_is_refused() {
        let usual = "write a host such as example.com, or *.example.com for all below it";
        for (text, remedy) in [
            ("", usual),
            ("*", usual),
            ("*.", usual),
            ("a.*.com", usual),
            ("http://a", usual),
            ("a/b", usual),
            ("a.com:80", "write the host without its port, as a.com"),
        ] {
            assert_eq!(HostPattern::parse(text).unwrap_err(), remedy, "{text}");
        }
    }
}

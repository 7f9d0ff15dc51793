//! Parses the target argument.

use anyhow::{Result, anyhow, bail};
use percent_encoding::percent_decode_str;

/// The parts of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) scheme: String,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

const USAGE: &str = "use http://HOST:PORT, grpc://HOST:PORT, redis://HOST:PORT or memory";

/// Parses a URL, or a scheme alone.
pub(super) fn parse(target: &str) -> Result<Address> {
    let (scheme, rest) = target.split_once("://").unwrap_or((target, ""));
    let scheme = match scheme {
        "http" | "grpc" | "redis" | "memory" => scheme,
        "valkey" => "redis",
        "https" | "grpcs" | "rediss" | "valkeys" => bail!(
            "the target {target:?} needs TLS, which bench does not support; use a listener without \
             TLS"
        ),
        _ => bail!("unknown target {target:?}; {USAGE}"),
    };
    let rest = rest.trim_end_matches('/');
    if rest.contains(['/', '?', '#']) {
        bail!("the target {target:?} has a path, which bench does not support; {USAGE}");
    }
    let (login, authority) = match rest.rsplit_once('@') {
        Some((login, authority)) => (Some(login), authority),
        None => (None, rest),
    };
    let (host, port) = host_and_port(authority)
        .ok_or_else(|| anyhow!("the port of the target {target:?} is not a number; {USAGE}"))?;
    let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
        Some((user, password)) => (decode(user), decode(password)),
        None => (None, None),
    };
    Ok(Address { scheme: scheme.to_owned(), host, port, user, password })
}

fn host_and_port(authority: &str) -> Option<(Option<String>, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map(str::parse).transpose().ok()?;
    Some((Some(host.to_owned()).filter(|host| !host.is_empty()), port))
}

/// A percent-decoded part of a login; `None` if it is empty or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    (!text.is_empty()).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        type Parts<'a> = (&'a str, &'a str, u16, &'a str, &'a str);
        let check = |target: &str, expected: Parts<'_>| {
            let value = parse(target).unwrap();
            let text = |part: &Option<String>| part.clone().unwrap_or_default();
            let (host, user, password) =
                (text(&value.host), text(&value.user), text(&value.password));
            let found = (&*value.scheme, &*host, value.port.unwrap_or(0), &*user, &*password);
            assert_eq!(found, expected, "{target}");
        };
        check("memory", ("memory", "", 0, "", ""));
        check("redis", ("redis", "", 0, "", ""));
        check("http://example.com:80/", ("http", "example.com", 80, "", ""));
        check("grpc://[::1]:8081", ("grpc", "::1", 8081, "", ""));
        check("valkey://me:a%40b@host", ("redis", "host", 0, "me", "a@b"));
        check("http://:t%zz@host", ("http", "host", 0, "", "t%zz"));
    }

    #[test]
    fn invalid_targets_are_rejected_with_the_valid_forms() {
        let check = |target: &str, part: &str| {
            let error = parse(target).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(target), "{error}");
        };
        check("ftp://host", "http://HOST:PORT");
        check("rediss://host", "TLS");
        check("http://host:x", "port");
        check("http://host:80/v1/check", "path");
        check("localhost:8080", "unknown target");
    }
}

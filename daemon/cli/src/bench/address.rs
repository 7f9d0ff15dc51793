//! The target as it was written.

use anyhow::{Result, anyhow, bail};

/// What a target says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) scheme: String,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

const USAGE: &str = "write http://HOST:PORT, grpc://HOST:PORT, redis://HOST:PORT or memory";

/// Reads a URL, or a scheme alone.
pub(super) fn read(target: &str) -> Result<Written> {
    let (scheme, rest) = target.split_once("://").unwrap_or((target, ""));
    let scheme = match scheme {
        "http" | "grpc" | "redis" | "memory" => scheme,
        "valkey" => "redis",
        "https" | "grpcs" | "rediss" | "valkeys" => bail!(
            "the target {target:?} asks for TLS, which bench does not speak; load a listener \
             without it"
        ),
        _ => bail!("the target {target:?} is none that bench knows; {USAGE}"),
    };
    let rest = rest.trim_end_matches('/');
    if rest.contains(['/', '?', '#']) {
        bail!("the target {target:?} has a path, which bench does not take; {USAGE}");
    }
    let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(a, b)| (Some(a), b));
    let (host, port) = host_and_port(place)
        .ok_or_else(|| anyhow!("the target {target:?} has no port that is a number; {USAGE}"))?;
    let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
        Some((user, password)) => (decoded(user), decoded(password)),
        None => (None, None),
    };
    Ok(Written { scheme: scheme.to_owned(), host, port, user, password })
}

fn host_and_port(place: &str) -> Option<(Option<String>, Option<u16>)> {
    let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = port.map(str::parse).transpose().ok()?;
    Some((Some(host.to_owned()).filter(|x| !x.is_empty()), port))
}

/// A part of a login, percent-decoded; nothing if it is empty.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).filter(|_| *first == b'%');
        let byte =
            digits.and_then(|digit| u8::from_str_radix(std::str::from_utf8(digit).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &more[2..] } else { more };
    }
    String::from_utf8(bytes).ok().filter(|x| !x.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        type Parts<'a> = (&'a str, &'a str, u16, &'a str, &'a str);
        let check = |target: &str, expected: Parts<'_>| {
            let value = read(target).unwrap();
            let text = |x: &Option<String>| x.clone().unwrap_or_default();
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
    fn what_is_none_is_told_with_what_to_write() {
        let check = |target: &str, part: &str| {
            let why = read(target).unwrap_err().to_string();
            assert!(why.contains(part) && why.contains(target), "{why}");
        };
        check("ftp://host", "http://HOST:PORT");
        check("rediss://host", "TLS");
        check("http://host:x", "port");
        check("http://host:80/v1/check", "path");
        check("localhost:8080", "none that bench knows");
    }
}

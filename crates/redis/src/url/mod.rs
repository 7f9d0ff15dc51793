//! Store URLs.
//!
//! `redis://[user[:password]@]host[:port][/db]`, `redis+unix:///path?db=N` (`unix://` as well),
//! `redis+cluster://host:port,host:port`, `redis+sentinel://host:port,host:port/master[/db]`; with
//! `rediss` in place of `redis` for TLS, and `valkey` as an alias of `redis`.

mod address;
mod address_map;

use std::path::PathBuf;

pub(crate) use address::Address;
pub(crate) use address_map::AddressMap;

use tollgate_state::OpenError;

use crate::error::{invalid_part, invalid_secret};

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) servers: Servers,
    pub(crate) is_tls: bool,
    pub(crate) login: Login,
    pub(crate) database: u32,
}

/// The servers of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    One(Address),
    /// Seed nodes of a cluster.
    Cluster(Vec<Address>),
    /// Sentinels, and the name of the master.
    Sentinels {
        sentinels: Vec<Address>,
        master: Box<str>,
    },
}

/// Credentials. `Debug` hides the password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    /// The file with the password, in place of `password`.
    pub(crate) password_file: Option<PathBuf>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("username", &self.username).finish_non_exhaustive()
    }
}

const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// Parses a URL.
pub(crate) fn parse(url: &str) -> Result<Target, OpenError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(invalid_secret("scheme", "write redis://HOST, with :// after the scheme"));
    };
    let (is_tls, kind) = parse_scheme(scheme)?;
    if is_tls && !cfg!(feature = "tls-rustls") {
        return Err(OpenError::Feature { scheme: scheme.into(), feature: "tls-rustls" });
    }
    if kind == "unix" {
        return parse_unix(rest);
    }
    if rest.contains(['?', '#']) {
        return Err(invalid_secret(
            "rest",
            "remove ? and #; in a user or a password write %3F and %23",
        ));
    }
    let (authority, path) =
        rest.split_once('/').map_or((rest, None), |(authority, path)| (authority, Some(path)));
    if path.is_some_and(|path| path.contains('@')) {
        return Err(invalid_secret("password", "write %2F for / and %40 for @"));
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (parse_login(login)?, hosts),
        None => (Login::default(), authority),
    };
    let path = path.filter(|path| !path.is_empty());
    let (servers, database) = match kind {
        "cluster" => {
            if let Some(path) = path.filter(|path| *path != "0") {
                return Err(invalid_part(
                    "database",
                    path,
                    "a cluster has database 0 only: remove it",
                ));
            }
            (Servers::Cluster(address::parse_all(hosts, PORT)?), 0)
        }
        "sentinel" => {
            // Without a path, the master is missing, which is reported below.
            let path = path.unwrap_or("");
            let (master, database) = path.split_once('/').unwrap_or((path, ""));
            if master.is_empty() {
                let remedy = "write the name after the sentinels, as in /mymaster";
                return Err(invalid_part("master", master, remedy));
            }
            let sentinels = address::parse_all(hosts, SENTINEL_PORT)?;
            let master = decode("master", master)?.into();
            (Servers::Sentinels { sentinels, master }, parse_database(database)?)
        }
        _ => {
            if hosts.contains(',') {
                let remedy = "only redis+cluster:// and redis+sentinel:// take several hosts";
                return Err(invalid_part("host", hosts, remedy));
            }
            let address = address::parse(hosts, PORT)?;
            (Servers::One(address), path.map_or(Ok(0), parse_database)?)
        }
    };
    Ok(Target { servers, is_tls, login, database })
}

/// Parses a scheme: whether to use TLS, and the kind of servers.
fn parse_scheme(scheme: &str) -> Result<(bool, &str), OpenError> {
    let (server, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    let is_tls = matches!(server, "rediss" | "valkeys");
    let is_known = is_tls || matches!(server, "redis" | "valkey");
    match kind {
        "" if scheme == "unix" => Ok((false, "unix")),
        "unix" if is_known && !is_tls => Ok((false, "unix")),
        "" | "cluster" | "sentinel" if is_known => Ok((is_tls, kind)),
        _ => Err(invalid_part(
            "scheme",
            scheme,
            "write redis, redis+unix, redis+cluster or redis+sentinel, and rediss in place of redis for TLS",
        )),
    }
}

/// `/path?db=N&user=U&pass=P`
fn parse_unix(rest: &str) -> Result<Target, OpenError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !path.starts_with('/') {
        let remedy = "write the absolute path after ://, as in redis+unix:///run/redis.sock";
        return Err(invalid_part("path", path, remedy));
    }
    let (mut login, mut database) = (Login::default(), 0);
    for parameter in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "db" => database = parse_database(value)?,
            "user" => login.username = Some(decode("user", value)?),
            "pass" => login.password = Some(decode("password", value)?),
            // The name may be the end of a password that contains `&`.
            _ if login.password.is_some() => {
                let remedy = "expected db, user or pass; in a password write %26 for &";
                return Err(invalid_secret("parameter", remedy));
            }
            _ => return Err(invalid_part("parameter", name, "expected db, user or pass")),
        }
    }
    let path = PathBuf::from(decode("path", path)?);
    Ok(Target { servers: Servers::One(Address::Unix(path)), is_tls: false, login, database })
}

fn parse_login(login: &str) -> Result<Login, OpenError> {
    let (username, password) = match login.split_once(':') {
        Some((username, password)) => (username, Some(decode("password", password)?)),
        None => (login, None),
    };
    let username = Some(username).filter(|username| !username.is_empty());
    let username = username.map(|username| decode("user", username)).transpose()?;
    Ok(Login { username, password, password_file: None })
}

fn parse_database(text: &str) -> Result<u32, OpenError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| invalid_part("database", text, "write a number, as in /2"))
}

/// Decodes percent-encoding.
fn decode(part: &'static str, text: &str) -> Result<String, OpenError> {
    let invalid =
        || invalid_secret(part, "write % and two hexadecimal digits for a byte, and %25 for %");
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let byte = if *first == b'%' {
            let (digits, after) = after.split_at_checked(2).ok_or_else(invalid)?;
            rest = after;
            let digits = str::from_utf8(digits).map_err(|_| invalid())?;
            u8::from_str_radix(digits, 16).map_err(|_| invalid())?
        } else {
            rest = after;
            *first
        };
        decoded.push(byte);
    }
    String::from_utf8(decoded).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the servers, TLS, user, password and database of a URL, or the error.
    fn check(url: &str, expected: &str) {
        let shown = match parse(url) {
            Ok(value) => {
                let servers = match &value.servers {
                    Servers::One(one) => one.to_string(),
                    Servers::Cluster(seeds) => format!("cluster {}", list(seeds)),
                    Servers::Sentinels { sentinels, master } => {
                        format!("{master} of {}", list(sentinels))
                    }
                };
                let tls = if value.is_tls { " tls" } else { "" };
                let login = format!("{:?}:{:?}", value.login.username, value.login.password);
                format!("{servers}{tls} {} {}", login.replace("Some", ""), value.database)
            }
            Err(error) => error.to_string(),
        };
        assert!(shown.contains(expected), "{url}: {shown}");
    }

    fn list(addresses: &[Address]) -> String {
        addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn urls_are_parsed() {
        check("redis://h", "h:6379 None:None 0");
        check("valkey://h:7000/3", "h:7000 None:None 3");
        check("redis://:p%40%2fs@h", r#"h:6379 None:("p@/s") 0"#);
        check("rediss://u:p@h:1", r#"h:1 tls ("u"):("p") 0"#);
        check("redis://a@b:p@h", r#"h:6379 ("a@b"):("p") 0"#);
        check("redis://[::1]:7/1", "[::1]:7 None:None 1");
        check("redis://[::1]", "[::1]:6379");
        check("unix:///run/r.sock?db=2&pass=x", r#"/run/r.sock None:("x") 2"#);
        check("redis+unix:///r%20s", "/r s None:None 0");
        check("redis+cluster://a:1,b", "cluster a:1,b:6379 None");
        check("rediss+cluster://u:p@a:1,b:2/", r#"cluster a:1,b:2 tls ("u"):("p") 0"#);
        check("redis+sentinel://a,b:2/my/4", "my of a:26379,b:2 None:None 4");
        check("rediss+sentinel://a/my", "my of a:26379 tls None:None 0");
    }

    #[test]
    fn invalid_urls_are_rejected_with_a_hint() {
        check("h:6379", "the scheme of the store's URL: write redis://HOST");
        check("http://h", r#"the scheme "http" of the store's URL: write redis,"#);
        check("rediss+unix:///x", "the scheme \"rediss+unix\"");
        check("redis://", "the host \"\" of the store's URL: write a name or an address");
        check("redis://h:99999", "the port \"99999\" of the store's URL: write a number from 1");
        check("redis://h:0", "the port \"0\"");
        check("redis://[::1]7000", "write : between ] and the port");
        check("redis://h/x", "the database \"x\" of the store's URL: write a number");
        check("redis://h,g", "only redis+cluster:// and redis+sentinel:// take several hosts");
        check("redis+cluster://h/1", "a cluster has database 0 only");
        check("redis+cluster://h,,g", "the host \"\"");
        check("redis+sentinel://h", "the master \"\" of the store's URL: write the name");
        check("redis+unix://run/x", "write the absolute path");
        check("redis+unix:///x?database=1", "the parameter \"database\"");
        check("redis://h?db=1", "remove ? and #");
    }

    #[test]
    fn errors_never_contain_a_password() {
        for url in [
            "redis://u:secret%zz@h",
            "redis://u:secret/x@h",
            "redis://u:secret@h:x",
            "redis://u:secret",
            "redis://:secret?x@h",
            "redis+unix:///x?pass=secret%z",
            "redis+unix:///x?pass=a&secret=b",
            "secret:secret",
        ] {
            let error = parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{url}: {error}");
        }
        let target = parse("redis://u:secret@h").unwrap();
        assert!(!format!("{target:?}").contains("secret"));
    }
}

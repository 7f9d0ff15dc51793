//! The URLs of stores.
//!
//! `redis://[user[:password]@]host[:port][/db]`, `redis+unix:///path?db=N` (`unix://` as well),
//! `redis+cluster://host:port,host:port`, `redis+sentinel://host:port,host:port/master[/db]`; with
//! `rediss` in place of `redis` for TLS, and `valkey` wherever `redis` stands.

mod address;

use std::path::PathBuf;

pub(crate) use address::Address;

use crate::open_error::OpenError;

/// What a URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) servers: Servers,
    pub(crate) is_tls: bool,
    pub(crate) login: Login,
    pub(crate) database: u32,
}

/// Which servers there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    One(Address),
    /// Some nodes of a cluster, which know the others.
    Cluster(Vec<Address>),
    /// Those who know where the master is.
    Sentinels {
        sentinels: Vec<Address>,
        master: Box<str>,
    },
}

/// Who logs in. Nobody sees the password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    /// What holds the password, if it is not known here.
    pub(crate) password_file: Option<PathBuf>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("username", &self.username).finish_non_exhaustive()
    }
}

const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// Reads a URL.
pub(crate) fn parse(url: &str) -> Result<Target, OpenError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(OpenError::secret("scheme", "write redis://HOST, with :// after the scheme"));
    };
    let (is_tls, kind) = kind_of(scheme)?;
    if kind == "unix" {
        return parse_unix(rest);
    }
    if rest.contains(['?', '#']) {
        return Err(OpenError::secret(
            "rest",
            "there is no ? or # in such a URL; in a user or password write %3F and %23",
        ));
    }
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(x, path)| (x, Some(path)));
    if path.is_some_and(|path| path.contains('@')) {
        return Err(OpenError::secret("password", "write %2F for a / in it, and %40 for an @"));
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (parse_login(login)?, hosts),
        None => (Login::default(), authority),
    };
    let path = path.filter(|path| !path.is_empty());
    let (servers, database) = match kind {
        "cluster" => {
            if let Some(path) = path.filter(|path| *path != "0") {
                return Err(OpenError::url("database", path, "a cluster has 0 only: leave it out"));
            }
            (Servers::Cluster(address::parse_all(hosts, PORT)?), 0)
        }
        "sentinel" => {
            let path = path.unwrap_or_default();
            let (master, database) = path.split_once('/').unwrap_or((path, ""));
            if master.is_empty() {
                let remedy = "write its name after the sentinels, as in /mymaster";
                return Err(OpenError::url("master", master, remedy));
            }
            let sentinels = address::parse_all(hosts, SENTINEL_PORT)?;
            let master = decode("master", master)?.into();
            (Servers::Sentinels { sentinels, master }, parse_database(database)?)
        }
        _ => {
            if hosts.contains(',') {
                let remedy = "several are for redis+cluster:// and redis+sentinel:// only";
                return Err(OpenError::url("host", hosts, remedy));
            }
            let address = address::parse(hosts, PORT)?;
            (Servers::One(address), parse_database(path.unwrap_or_default())?)
        }
    };
    Ok(Target { servers, is_tls, login, database })
}

/// Whether there is TLS, and what kind of servers there are.
fn kind_of(scheme: &str) -> Result<(bool, &str), OpenError> {
    let (server, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    let is_tls = matches!(server, "rediss" | "valkeys");
    let is_known = is_tls || matches!(server, "redis" | "valkey");
    match kind {
        "" if scheme == "unix" => Ok((false, "unix")),
        "unix" if is_known && !is_tls => Ok((false, "unix")),
        "" | "cluster" | "sentinel" if is_known => Ok((is_tls, kind)),
        _ => Err(OpenError::url(
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
        let remedy = "write the whole path after ://, as in redis+unix:///run/redis.sock";
        return Err(OpenError::url("path", path, remedy));
    }
    let (mut login, mut database) = (Login::default(), 0);
    for parameter in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "db" => database = parse_database(value)?,
            "user" => login.username = Some(decode("user", value)?),
            "pass" => login.password = Some(decode("password", value)?),
            _ => return Err(OpenError::url("parameter", name, "there are db, user and pass")),
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
    let username = Some(username).filter(|x| !x.is_empty());
    let username = username.map(|username| decode("user", username)).transpose()?;
    Ok(Login { username, password, password_file: None })
}

fn parse_database(text: &str) -> Result<u32, OpenError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| OpenError::url("database", text, "write a number, as in /2"))
}

/// Takes what is written as `%` and two hexadecimal digits for the byte that it stands for.
fn decode(part: &'static str, text: &str) -> Result<String, OpenError> {
    let wrong = || {
        OpenError::secret(
            part,
            "write % and two hexadecimal digits for a byte, and %25 for a % itself",
        )
    };
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let byte = if *first == b'%' {
            let digits =
                after.get(..2).and_then(|after| str::from_utf8(after).ok()).ok_or_else(wrong)?;
            rest = after.get(2..).unwrap_or_default();
            u8::from_str_radix(digits, 16).map_err(|_| wrong())?
        } else {
            rest = after;
            *first
        };
        decoded.push(byte);
    }
    String::from_utf8(decoded).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A URL, and what it says: servers, TLS, user, password, database.
    fn check(url: &str, expected: &str) {
        let said = match parse(url) {
            Ok(value) => {
                let servers = match &value.servers {
                    Servers::One(one) => one.to_string(),
                    Servers::Cluster(them) => format!("cluster {}", list(them)),
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
        assert!(said.contains(expected), "{url}: {said}");
    }

    fn list(them: &[Address]) -> String {
        them.iter().map(Address::to_string).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn urls_say_where_servers_are() {
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
    fn a_wrong_url_is_told_what_to_write() {
        check("h:6379", "the scheme of the store's URL: write redis://HOST");
        check("http://h", r#"the scheme "http" of the store's URL: write redis,"#);
        check("rediss+unix:///x", "the scheme \"rediss+unix\"");
        check("redis://", "the host \"\" of the store's URL: write its name or address");
        check("redis://h:99999", "the port \"99999\" of the store's URL: write a number from 1");
        check("redis://h:0", "the port \"0\"");
        check("redis://h/x", "the database \"x\" of the store's URL: write a number");
        check("redis://h,g", "several are for redis+cluster");
        check("redis+cluster://h/1", "a cluster has 0 only");
        check("redis+cluster://h,,g", "the host \"\"");
        check("redis+sentinel://h", "the master \"\" of the store's URL: write its name");
        check("redis+unix://run/x", "write the whole path");
        check("redis+unix:///x?database=1", "the parameter \"database\"");
        check("redis://h?db=1", "there is no ? or #");
    }

    #[test]
    fn an_error_never_shows_a_password() {
        for url in [
            "redis://u:secret%zz@h",
            "redis://u:secret/x@h",
            "redis://u:secret@h:x",
            "redis://u:secret",
            "redis://:secret?x@h",
            "redis+unix:///x?pass=secret%z",
            "secret:secret",
        ] {
            let error = parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{url}: {error}");
        }
        let target = parse("redis://u:secret@h").unwrap();
        assert!(!format!("{target:?}").contains("secret"));
    }
}

//! Where the counters are: the variables of Redis as the URL of a store.

use std::fmt::Write;

use tollgate_server::{Config, StoreUrl};

use super::environment::Environment;

const TYPES: &[&str] = &["single", "sentinel", "cluster"];
const SOCKETS: &[&str] = &["tcp", "unix"];
/// The most connections that a store takes.
const MAX_CONNECTIONS: u32 = 64;
const MEMORY: &str = "memory";
/// How long a namespace may be.
const MAX_NAMESPACE_LEN: usize = 64;

/// Says where the counters are.
pub(super) fn read(environment: &Environment, config: &mut Config) {
    config.namespace = namespace(environment).unwrap_or_else(|| config.namespace.clone());
    let is_memory = backend_is_memory(environment);
    let redis = Redis::read(environment);
    let timeout = environment.duration("REDIS_TIMEOUT");
    let timeout = environment.said("REDIS_TIMEOUT").map(|_| timeout);
    let pool = environment.whole("REDIS_POOL_SIZE", 1, u32::MAX);
    let files = ["REDIS_TLS_CACERT", "REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY"]
        .map(|x| environment.some(x).map(Into::into));
    let sentinels = environment.some("REDIS_SENTINEL_AUTH");
    if is_memory {
        config.store.url = MEMORY.into();
        return;
    }
    let Some(url) = redis.url(environment) else { return };
    let store = &mut config.store;
    store.url = StoreUrl::from(&*url);
    if let Some(timeout) = timeout {
        if timeout.is_zero() {
            environment.refuse("REDIS_TIMEOUT", "write how long Redis may take, such as 15ms");
        }
        (store.deadline, store.connect_timeout) = (timeout, timeout);
    }
    if let (Some(pool), Some(_)) = (pool, environment.said("REDIS_POOL_SIZE")) {
        store.connections = usize::try_from(pool.min(MAX_CONNECTIONS)).unwrap_or(usize::MAX);
    }
    if redis.is_tls {
        [store.ca, store.cert, store.key] = files;
        match (&store.cert, &store.key) {
            (Some(_), None) => {
                environment.refuse("REDIS_TLS_CLIENT_CERT", "name REDIS_TLS_CLIENT_KEY too");
            }
            (None, Some(_)) => {
                environment.refuse("REDIS_TLS_CLIENT_KEY", "name REDIS_TLS_CLIENT_CERT too");
            }
            _ => {}
        }
    }
    if let Some(login) = sentinels.filter(|_| redis.kind == "sentinel") {
        let (user, password) = split_login(&login);
        store.sentinel_username = user.map(str::to_owned);
        store.sentinel_password = Some(password.into());
    }
}

fn backend_is_memory(environment: &Environment) -> bool {
    match &*environment.text("BACKEND_TYPE") {
        MEMORY => true,
        "redis" | "" => false,
        "memcache" => {
            let remedy = "Memcached is no store of Tollgate's: name a Redis or Valkey in \
                          REDIS_URL, or write memory for one replica that needs no server";
            environment.refuse("BACKEND_TYPE", remedy);
            false
        }
        _ => {
            environment.refuse("BACKEND_TYPE", "write redis or memory");
            false
        }
    }
}

/// The prefix of keys, in the letters that a namespace may have. That of nobody is none.
fn namespace(environment: &Environment) -> Option<String> {
    let prefix = environment.some("CACHE_KEY_PREFIX")?;
    if prefix.chars().count() > MAX_NAMESPACE_LEN {
        environment.refuse("CACHE_KEY_PREFIX", "write at most 64 characters");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    Some(prefix.chars().map(|c| if plain(c) { c } else { '-' }).collect())
}

/// What the variables say of the server.
struct Redis {
    kind: &'static str,
    is_unix: bool,
    is_tls: bool,
    login: Option<String>,
    /// What REDIS_URL says.
    said: Option<String>,
}

impl Redis {
    fn read(environment: &Environment) -> Self {
        let url = environment.text("REDIS_URL");
        let said = environment.said("REDIS_URL").map(|_| url);
        let socket = environment.word("REDIS_SOCKET_TYPE", SOCKETS).unwrap_or("tcp");
        let is_path = said.as_ref().is_some_and(|x| x.starts_with('/'));
        let is_said = environment.said("REDIS_SOCKET_TYPE").is_some();
        Redis {
            kind: environment.word("REDIS_TYPE", TYPES).unwrap_or("single"),
            is_unix: if is_said { socket == "unix" } else { is_path },
            is_tls: environment.truth("REDIS_TLS"),
            login: environment.some("REDIS_AUTH"),
            said: said.filter(|x| !x.is_empty()),
        }
    }

    /// The URL of the store; nothing if there can be none, which is then noted.
    fn url(&self, environment: &Environment) -> Option<String> {
        let Some(said) = &self.said else {
            let remedy = "name the server, such as REDIS_URL=redis:6379 with \
                          REDIS_SOCKET_TYPE=tcp, or set BACKEND_TYPE=memory for one replica that \
                          needs none";
            environment.refuse("REDIS_URL", remedy);
            return None;
        };
        match self.kind {
            "sentinel" => self.of_sentinels(said, environment),
            "cluster" => Some(self.of_servers("+cluster", said)),
            _ if self.is_unix => self.of_socket(said, environment),
            _ => Some(self.of_servers("", said)),
        }
    }

    fn of_socket(&self, path: &str, environment: &Environment) -> Option<String> {
        if !path.starts_with('/') {
            let remedy = "it is no path of a socket; write one, such as /run/redis.sock, or set \
                          REDIS_SOCKET_TYPE=tcp";
            environment.refuse("REDIS_URL", remedy);
            return None;
        }
        if self.is_tls {
            environment.refuse("REDIS_TLS", "TLS is not spoken at a socket; leave it out");
        }
        let mut url = format!("redis+unix://{}", encoded(path, "/"));
        if let Some(login) = &self.login {
            let (user, password) = split_login(login);
            let user = user.map(|user| format!("user={}&", encoded(user, ""))).unwrap_or_default();
            url.push_str(&format!("?{user}pass={}", encoded(password, "")));
        }
        Some(url)
    }

    fn of_sentinels(&self, said: &str, environment: &Environment) -> Option<String> {
        let Some((master, sentinels)) = said.split_once(',') else {
            environment.refuse("REDIS_URL", "write MASTER,HOST:PORT,HOST:PORT for sentinels");
            return None;
        };
        let servers = self.of_servers("+sentinel", sentinels);
        Some(format!("{servers}/{}", encoded(master, "")))
    }

    /// The servers, of which each may be a URL itself; the first login among them holds for all,
    /// before that of REDIS_AUTH.
    fn of_servers(&self, kind: &str, said: &str) -> String {
        let (mut hosts, mut login, mut is_tls) = (Vec::new(), None, self.is_tls);
        for server in said.split(',').map(str::trim) {
            let (scheme, rest) = server.split_once("://").unwrap_or(("", server));
            is_tls |= matches!(scheme, "rediss" | "valkeys");
            let (known, host) = rest.rsplit_once('@').unwrap_or(("", rest));
            login = login.or(Some(known.to_owned()).filter(|x| !x.is_empty()));
            hosts.push(host);
        }
        let login = login.or_else(|| {
            let (user, password) = split_login(self.login.as_ref()?);
            Some(format!("{}:{}", encoded(user.unwrap_or_default(), ""), encoded(password, "")))
        });
        let scheme = if is_tls { "rediss" } else { "redis" };
        let login = login.map(|login| format!("{login}@")).unwrap_or_default();
        format!("{scheme}{kind}://{login}{}", hosts.join(","))
    }
}

/// `PASSWORD` or `USER:PASSWORD`.
fn split_login(login: &str) -> (Option<&str>, &str) {
    login.split_once(':').map_or((None, login), |(user, password)| (Some(user), password))
}

/// With `%` and two digits for everything that a URL could take for something else.
fn encoded(text: &str, but: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let letter = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-._~".contains(letter) || but.contains(letter) {
            encoded.push(letter);
        } else {
            // Writing into a text does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    /// The URL of the store, or what is wrong.
    fn check(lines: &str, expected: &str) {
        let environment = environment(lines);
        let mut config = Config::default();
        read(&environment, &mut config);
        let wrong: Vec<_> = environment.wrong().iter().map(ToString::to_string).collect();
        let said = match wrong.first() {
            Some(wrong) => wrong.clone(),
            None => config.store.url.as_str().to_owned(),
        };
        let is_expected = if wrong.is_empty() { said == expected } else { said.contains(expected) };
        assert!(is_expected, "{lines}: {said}");
    }

    #[test]
    fn the_url_of_the_store_says_what_the_variables_say() {
        for (lines, url) in [
            ("BACKEND_TYPE=memory", "memory"),
            ("REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379", "redis://redis:6379"),
            // Where no type of socket is set, the URL shows it.
            ("REDIS_URL=redis:6379", "redis://redis:6379"),
            ("REDIS_URL=/run/redis.sock", "redis+unix:///run/redis.sock"),
            ("REDIS_SOCKET_TYPE=unix REDIS_URL=/a?b", "redis+unix:///a%3Fb"),
            ("REDIS_SOCKET_TYPE=TCP REDIS_URL=r:1 REDIS_TLS=true", "rediss://r:1"),
            ("REDIS_URL=r:1 REDIS_AUTH=p@ss/", "redis://:p%40ss%2F@r:1"),
            ("REDIS_URL=r:1 REDIS_AUTH=me:a:b", "redis://me:a%3Ab@r:1"),
            ("REDIS_URL=/s REDIS_AUTH=me:p&q", "redis+unix:///s?user=me&pass=p%26q"),
            ("REDIS_URL=redis://me:pw@r:1/2 REDIS_AUTH=no", "redis://me:pw@r:1/2"),
            ("REDIS_URL=rediss://r:1", "rediss://r:1"),
            ("REDIS_TYPE=CLUSTER REDIS_URL=a:1,b:2", "redis+cluster://a:1,b:2"),
            (
                "REDIS_TYPE=cluster REDIS_URL=redis://u:p@a:1,redis://u:p@b:2",
                "redis+cluster://u:p@a:1,b:2",
            ),
            (
                "REDIS_TYPE=SENTINEL REDIS_URL=mymaster,a:1,b:2 REDIS_AUTH=pw",
                "redis+sentinel://:pw@a:1,b:2/mymaster",
            ),
        ] {
            check(lines, url);
        }
    }

    #[test]
    fn what_cannot_be_a_store_is_refused_with_a_remedy() {
        for (lines, wrong) in [
            ("", "REDIS_URL is not set; name the server"),
            ("REDIS_URL=", "REDIS_URL is empty; name the server"),
            ("BACKEND_TYPE=memcache REDIS_URL=r:1", "BACKEND_TYPE is \"memcache\"; Memcached is"),
            ("BACKEND_TYPE=etcd REDIS_URL=r:1", "BACKEND_TYPE is \"etcd\"; write redis or"),
            ("REDIS_TYPE=ring REDIS_URL=r:1", "write one of single, sentinel, cluster"),
            ("REDIS_SOCKET_TYPE=udp REDIS_URL=r:1", "write one of tcp, unix"),
            ("REDIS_SOCKET_TYPE=unix REDIS_URL=r:1", "it is no path of a socket"),
            ("REDIS_URL=/s REDIS_TLS=1", "REDIS_TLS is \"1\"; TLS is not spoken"),
            ("REDIS_TYPE=sentinel REDIS_URL=a:1", "write MASTER,HOST:PORT"),
            ("REDIS_URL=r:1 REDIS_POOL_SIZE=0", "write a number from 1"),
            ("REDIS_URL=r:1 REDIS_TIMEOUT=0", "REDIS_TIMEOUT is \"0\"; write how long"),
            ("REDIS_URL=r:1 REDIS_TLS=1 REDIS_TLS_CLIENT_CERT=/c", "name REDIS_TLS_CLIENT_KEY"),
        ] {
            check(lines, wrong);
        }
    }

    #[test]
    fn what_goes_with_the_url_is_taken_where_it_is_said() {
        let lines = "REDIS_URL=r:1 REDIS_TLS=1 REDIS_TLS_CACERT=/ca REDIS_POOL_SIZE=500 \
                     REDIS_TIMEOUT=40ms CACHE_KEY_PREFIX=shop:eu/";
        let mut config = Config::default();
        read(&environment(lines), &mut config);
        assert_eq!(config.store.ca.as_deref(), Some("/ca".as_ref()));
        assert_eq!(config.store.connections, 64);
        assert_eq!(config.store.deadline.as_millis(), 40);
        assert_eq!(config.namespace, "shop-eu-");
        let mut usual = Config::default();
        read(&environment("REDIS_URL=r:1"), &mut usual);
        assert_eq!(usual.store.connections, 2);
        assert_eq!(usual.store.deadline.as_millis(), 15);
        assert_eq!(usual.namespace, "tollgate");
    }

    #[test]
    fn sentinels_have_a_login_of_their_own() {
        let lines = "REDIS_TYPE=sentinel REDIS_URL=m,a:1 REDIS_SENTINEL_AUTH=watch:secret";
        let mut config = Config::default();
        read(&environment(lines), &mut config);
        assert_eq!(config.store.sentinel_username.as_deref(), Some("watch"));
        assert!(!format!("{:?}", config.store).contains("secret"));
    }
}

//! The store: the variables of Redis as the URL of a store.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use tollgate_daemon::{Config, StoreUrl};

use super::environment::Environment;

const TYPES: &[&str] = &["single", "sentinel", "cluster"];
const SOCKETS: &[&str] = &["tcp", "unix"];
/// The maximum of `store.connections`.
const MAX_CONNECTIONS: u32 = 64;
const MEMORY: &str = "memory";
const MAX_NAMESPACE_LEN: usize = 64;
/// <https://www.rfc-editor.org/rfc/rfc3986#section-2.3>
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const RESERVED_IN_PATH: AsciiSet = RESERVED.remove(b'/');

/// Sets the store.
#[expect(clippy::expect_used, reason = "the number of connections is bounded")]
pub(super) fn read(environment: &Environment, config: &mut Config) {
    config.namespace = namespace(environment).unwrap_or_else(|| config.namespace.clone());
    let is_memory = backend_is_memory(environment);
    let redis = Redis::read(environment);
    let timeout = environment.duration("REDIS_TIMEOUT");
    let timeout = environment.get("REDIS_TIMEOUT").map(|_| timeout);
    let pool = environment.integer("REDIS_POOL_SIZE", 1, u32::MAX);
    let files = ["REDIS_TLS_CACERT", "REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY"]
        .map(|name| environment.non_empty(name).map(Into::into));
    let sentinel_login = environment.non_empty("REDIS_SENTINEL_AUTH");
    if is_memory {
        config.store.url = MEMORY.into();
        return;
    }
    let Some(url) = redis.store_url(environment) else { return };
    let store = &mut config.store;
    store.url = StoreUrl::from(&*url);
    if let Some(timeout) = timeout {
        if timeout.is_zero() {
            environment.reject("REDIS_TIMEOUT", "write a positive duration, such as 15ms");
        }
        (store.deadline, store.connect_timeout) = (timeout, timeout);
    }
    if let (Some(pool), Some(_)) = (pool, environment.get("REDIS_POOL_SIZE")) {
        let connections = pool.min(MAX_CONNECTIONS);
        store.connections = usize::try_from(connections).expect("at most MAX_CONNECTIONS");
    }
    if redis.is_tls {
        [store.ca, store.cert, store.key] = files;
        match (&store.cert, &store.key) {
            (Some(_), None) => {
                environment.reject("REDIS_TLS_CLIENT_CERT", "set REDIS_TLS_CLIENT_KEY too");
            }
            (None, Some(_)) => {
                environment.reject("REDIS_TLS_CLIENT_KEY", "set REDIS_TLS_CLIENT_CERT too");
            }
            _ => {}
        }
    }
    if let Some(login) = sentinel_login.filter(|_| redis.kind == "sentinel") {
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
            let remedy = "Memcached is not supported: set REDIS_URL to a Redis or Valkey server, \
                          or write memory for one replica without a server";
            environment.reject("BACKEND_TYPE", remedy);
            false
        }
        _ => {
            environment.reject("BACKEND_TYPE", "write redis or memory");
            false
        }
    }
}

/// The prefix of keys as a namespace; `None` if it is empty or not set.
fn namespace(environment: &Environment) -> Option<String> {
    let prefix = environment.non_empty("CACHE_KEY_PREFIX")?;
    if prefix.chars().count() > MAX_NAMESPACE_LEN {
        environment.reject("CACHE_KEY_PREFIX", "write at most 64 characters");
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    Some(prefix.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect())
}

/// The variables of the server.
struct Redis {
    kind: &'static str,
    is_unix: bool,
    is_tls: bool,
    login: Option<String>,
    /// REDIS_URL, unless it is empty.
    url: Option<String>,
}

impl Redis {
    fn read(environment: &Environment) -> Self {
        let url = environment.text("REDIS_URL");
        let url = environment.get("REDIS_URL").map(|_| url);
        let socket = environment.one_of("REDIS_SOCKET_TYPE", SOCKETS);
        let is_path = url.as_ref().is_some_and(|url| url.starts_with('/'));
        let has_type = environment.get("REDIS_SOCKET_TYPE").is_some();
        Redis {
            // An unknown type is recorded as an error, and the URL is not used.
            kind: environment.one_of("REDIS_TYPE", TYPES).unwrap_or("single"),
            is_unix: if has_type { socket == Some("unix") } else { is_path },
            is_tls: environment.bool("REDIS_TLS"),
            login: environment.non_empty("REDIS_AUTH"),
            url: url.filter(|url| !url.is_empty()),
        }
    }

    /// The URL of the store; `None` after an error.
    fn store_url(&self, environment: &Environment) -> Option<String> {
        let Some(url) = &self.url else {
            let remedy = "set it to the server, such as REDIS_URL=redis:6379 with \
                          REDIS_SOCKET_TYPE=tcp, or set BACKEND_TYPE=memory for one replica \
                          without a server";
            environment.reject("REDIS_URL", remedy);
            return None;
        };
        match self.kind {
            "sentinel" => self.sentinel_url(url, environment),
            "cluster" => Some(self.server_url("+cluster", url)),
            _ if self.is_unix => self.socket_url(url, environment),
            _ => Some(self.server_url("", url)),
        }
    }

    fn socket_url(&self, path: &str, environment: &Environment) -> Option<String> {
        if !path.starts_with('/') {
            let remedy = "write the path of a socket, such as /run/redis.sock, or set \
                          REDIS_SOCKET_TYPE=tcp";
            environment.reject("REDIS_URL", remedy);
            return None;
        }
        if self.is_tls {
            environment.reject("REDIS_TLS", "sockets do not support TLS; leave it out");
        }
        let mut url = format!("redis+unix://{}", utf8_percent_encode(path, &RESERVED_IN_PATH));
        if let Some(login) = &self.login {
            let (user, password) = split_login(login);
            url.push('?');
            if let Some(user) = user {
                url += &format!("user={}&", encode(user));
            }
            url += &format!("pass={}", encode(password));
        }
        Some(url)
    }

    fn sentinel_url(&self, servers: &str, environment: &Environment) -> Option<String> {
        let Some((master, sentinels)) = servers.split_once(',') else {
            environment.reject("REDIS_URL", "write MASTER,HOST:PORT,HOST:PORT for sentinels");
            return None;
        };
        let url = self.server_url("+sentinel", sentinels);
        Some(format!("{url}/{}", encode(master)))
    }

    /// The URL of servers, each of which may itself be a URL. The first login applies to all; it
    /// takes precedence over REDIS_AUTH.
    fn server_url(&self, kind: &str, servers: &str) -> String {
        let (mut hosts, mut login, mut is_tls) = (Vec::new(), None, self.is_tls);
        for server in servers.split(',').map(str::trim) {
            let (scheme, rest) = server.split_once("://").unwrap_or(("", server));
            is_tls |= matches!(scheme, "rediss" | "valkeys");
            let (credentials, host) = rest.rsplit_once('@').unwrap_or(("", rest));
            login = login.or(Some(credentials.to_owned()).filter(|login| !login.is_empty()));
            hosts.push(host);
        }
        let login = login.or_else(|| {
            let (user, password) = split_login(self.login.as_ref()?);
            Some(format!("{}:{}", encode(user.unwrap_or_default()), encode(password)))
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

/// Percent-encodes everything except unreserved characters.
fn encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, &RESERVED)
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    /// Compares the URL of the store, or the first error.
    fn check(lines: &str, expected: &str) {
        let environment = environment(lines);
        let mut config = Config::default();
        read(&environment, &mut config);
        let errors = environment.errors();
        let found = match errors.first() {
            Some(error) => error.clone(),
            None => config.store.url.as_str().to_owned(),
        };
        let is_expected =
            if errors.is_empty() { found == expected } else { found.contains(expected) };
        assert!(is_expected, "{lines}: {found}");
    }

    #[test]
    fn variables_form_the_url_of_the_store() {
        for (lines, url) in [
            ("BACKEND_TYPE=memory", "memory"),
            ("REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379", "redis://redis:6379"),
            // Without a socket type, the form of the URL decides.
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
    fn invalid_stores_are_errors_with_a_remedy() {
        for (lines, message) in [
            ("", "REDIS_URL is not set; set it to the server"),
            ("REDIS_URL=", "REDIS_URL is empty; set it to the server"),
            ("BACKEND_TYPE=memcache REDIS_URL=r:1", "BACKEND_TYPE is \"memcache\"; Memcached is"),
            ("BACKEND_TYPE=etcd REDIS_URL=r:1", "BACKEND_TYPE is \"etcd\"; write redis or"),
            ("REDIS_TYPE=ring REDIS_URL=r:1", "write one of single, sentinel, cluster"),
            ("REDIS_SOCKET_TYPE=udp REDIS_URL=r:1", "write one of tcp, unix"),
            ("REDIS_SOCKET_TYPE=unix REDIS_URL=r:1", "write the path of a socket"),
            ("REDIS_URL=/s REDIS_TLS=1", "REDIS_TLS is \"1\"; sockets do not support"),
            ("REDIS_TYPE=sentinel REDIS_URL=a:1", "write MASTER,HOST:PORT"),
            ("REDIS_URL=r:1 REDIS_POOL_SIZE=0", "write a number from 1"),
            ("REDIS_URL=r:1 REDIS_TIMEOUT=0", "REDIS_TIMEOUT is \"0\"; write a positive"),
            ("REDIS_URL=r:1 REDIS_TLS=1 REDIS_TLS_CLIENT_CERT=/c", "set REDIS_TLS_CLIENT_KEY"),
        ] {
            check(lines, message);
        }
    }

    #[test]
    fn other_settings_apply_if_they_are_set() {
        let lines = "REDIS_URL=r:1 REDIS_TLS=1 REDIS_TLS_CACERT=/ca REDIS_POOL_SIZE=500 \
                     REDIS_TIMEOUT=40ms CACHE_KEY_PREFIX=shop:eu/";
        let mut config = Config::default();
        read(&environment(lines), &mut config);
        assert_eq!(config.store.ca.as_deref(), Some("/ca".as_ref()));
        assert_eq!(config.store.connections, 64);
        assert_eq!(config.store.deadline.as_millis(), 40);
        assert_eq!(config.namespace, "shop-eu-");
        let mut defaults = Config::default();
        read(&environment("REDIS_URL=r:1"), &mut defaults);
        assert_eq!(defaults.store.connections, 2);
        assert_eq!(defaults.store.deadline.as_millis(), 15);
        assert_eq!(defaults.namespace, "tollgate");
    }

    #[test]
    fn sentinels_have_a_separate_login() {
        let lines = "REDIS_TYPE=sentinel REDIS_URL=m,a:1 REDIS_SENTINEL_AUTH=watch:secret";
        let mut config = Config::default();
        read(&environment(lines), &mut config);
        assert_eq!(config.store.sentinel_username.as_deref(), Some("watch"));
        assert!(!format!("{:?}", config.store).contains("secret"));
    }
}

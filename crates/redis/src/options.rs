//! Options of a store.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tls-rustls")]
use rustls::pki_types::ServerName;
use tollgate_algorithms::Micros;
use tollgate_state::{ManualClock, OpenError, REQUEST_ID_HORIZON};

use crate::error::invalid_option;
use crate::keyspace::SLOTS;
use crate::network::Network;

/// Options of a [`RedisStore`](crate::RedisStore).
///
/// # Examples
/// ```
/// use tollgate_redis::RedisOptions;
/// let options = RedisOptions { namespace: "shop".to_owned(), ..RedisOptions::default() };
/// assert_eq!(options.connections, 2);
/// ```
#[derive(Clone)]
pub struct RedisOptions {
    /// The prefix of all keys: letters, digits, `_`, `-` and `.`. Default: `tollgate`.
    pub namespace: String,
    /// The number of connections to each node. Default: 2.
    pub connections: usize,
    /// The timeout of an attempt to connect. Default: 1 s.
    pub connect_timeout: Duration,
    /// The timeout of a call. Default: 500 ms. After it the outcome of the call is unknown, and its
    /// connection is replaced.
    pub call_timeout: Duration,
    /// The maximum number of requests that wait for a node. Default: 10,000. Further requests fail
    /// with [`FailureKind::Overloaded`](tollgate_state::FailureKind::Overloaded).
    pub queue: usize,
    /// The maximum number of requests in a call. Default: 64.
    pub batch: usize,
    /// The number of partitions of the keys. Default: 64 on a cluster, none elsewhere. All keys of a
    /// partition have the same hash tag, so that a call can have several keys. The first store of a
    /// namespace stores the number in the cluster; a store with another number fails.
    ///
    /// Set it for a proxy that distributes keys over several servers by their hash tags, behind a URL
    /// of a single server. All stores of the namespace need the same number, which is not checked there.
    pub groups: Option<u16>,
    /// How long request ids are remembered. Default: 30 s.
    pub request_id_horizon: Micros,
    /// The user name, in place of the URL's.
    pub username: Option<String>,
    /// The password, in place of the URL's.
    pub password: Option<String>,
    /// A file with the password, in place of the URL's. It is read each second, and a new password is
    /// used on the open connections, too, one after the other. If a server rejects it, connections
    /// keep their login; see [`RedisStore::password_failure`](crate::RedisStore::password_failure).
    /// Trailing line breaks are ignored.
    pub password_file: Option<PathBuf>,
    /// The user name for the sentinels.
    pub sentinel_username: Option<String>,
    /// The password for the sentinels.
    pub sentinel_password: Option<String>,
    /// A file with the password for the sentinels, in place of `sentinel_password`. It can be replaced,
    /// too.
    pub sentinel_password_file: Option<PathBuf>,
    /// For addresses that a cluster or a sentinel announces, the addresses to connect to instead, each as
    /// `host:port`: for servers behind a NAT or in containers.
    pub address_map: BTreeMap<String, String>,
    /// The name that the certificates of servers and sentinels must have, in place of their host.
    pub tls_server_name: Option<String>,
    /// The CA bundle for TLS. Default: the system's roots.
    pub ca: Option<Pem>,
    /// The client certificate for TLS, with its chain.
    pub cert: Option<Pem>,
    /// The private key of the client certificate.
    pub key: Option<Pem>,
    /// The clock, in place of the server's, for tests and for replaying logs.
    #[doc(hidden)]
    pub clock: Option<ManualClock>,
    /// With a clock: the maximum number of log entries in the bytes of a key, a quarter of it for leases,
    /// so that tests cover long logs and many leases.
    #[doc(hidden)]
    pub short_log: Option<u16>,
    /// Whether the nodes have circuit breakers. Default: true. Tests of what happens without them set it
    /// to false.
    #[doc(hidden)]
    pub breaker: bool,
    /// Replaces TCP and TLS, for simulations.
    #[doc(hidden)]
    pub network: Option<Arc<dyn Network>>,
}

/// A certificate or key in PEM.
#[derive(Clone)]
pub enum Pem {
    /// The text itself.
    Bytes(Vec<u8>),
    /// A file. It is read again for each connection, so it can be replaced while the store is open.
    Path(PathBuf),
}

/// The number of partitions on a cluster.
pub(crate) const DEFAULT_GROUPS: u16 = 64;

pub(crate) const DEFAULT_NAMESPACE: &str = "tollgate";

impl Default for RedisOptions {
    fn default() -> Self {
        RedisOptions {
            namespace: DEFAULT_NAMESPACE.to_owned(),
            connections: 2,
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_millis(500),
            queue: 10_000,
            batch: 64,
            groups: None,
            request_id_horizon: REQUEST_ID_HORIZON,
            username: None,
            password: None,
            password_file: None,
            sentinel_username: None,
            sentinel_password: None,
            sentinel_password_file: None,
            address_map: BTreeMap::new(),
            tls_server_name: None,
            ca: None,
            cert: None,
            key: None,
            clock: None,
            short_log: None,
            breaker: true,
            network: None,
        }
    }
}

/// The upper bound of `batch`. The script numbers the keys of a call with 16 bits.
const MAX_BATCH: usize = 500;

impl RedisOptions {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let invalid =
            |name, value: &dyn fmt::Display, remedy| Err(invalid_option(name, value, remedy));
        if self.namespace.is_empty() || self.namespace.len() > 64 {
            return invalid("namespace", &self.namespace, "write 1 to 64 characters");
        }
        if !self.namespace.chars().all(is_allowed) {
            return invalid(
                "namespace",
                &self.namespace,
                "use letters, digits, '_', '-' and '.' only",
            );
        }
        if !(1..=64).contains(&self.connections) {
            return invalid("connections", &self.connections, "write a number from 1 to 64");
        }
        if !(1..=MAX_BATCH).contains(&self.batch) {
            return invalid("batch", &self.batch, "write a number from 1 to 500");
        }
        if self.queue == 0 {
            return invalid("queue", &self.queue, "write a number of at least 1");
        }
        #[cfg(feature = "tls-rustls")]
        if let Some(name) = &self.tls_server_name
            && ServerName::try_from(name.as_str()).is_err()
        {
            return invalid("tls_server_name", name, "write a host name or an IP address");
        }
        if let Some(groups) = self.groups.filter(|groups| !(1..=SLOTS).contains(groups)) {
            return invalid("groups", &groups, "write a number from 1 to 16384");
        }
        if self.call_timeout < Duration::from_millis(1) {
            return invalid("call_timeout", &"", "write a duration of at least 1 ms");
        }
        if self.connect_timeout < Duration::from_millis(1) {
            return invalid("connect_timeout", &"", "write a duration of at least 1 ms");
        }
        if let (Some(_), Some(file)) = (&self.password, &self.password_file) {
            let remedy = "set either this option or password";
            return invalid("password_file", &file.display(), remedy);
        }
        if let (Some(_), Some(file)) = (&self.sentinel_password, &self.sentinel_password_file) {
            let remedy = "set either this option or sentinel_password";
            return invalid("sentinel_password_file", &file.display(), remedy);
        }
        match (&self.cert, &self.key) {
            (Some(_), None) => invalid("cert", &"", "set the option key, its private key, too"),
            (None, Some(_)) => invalid("key", &"", "set the option cert, its certificate, too"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("namespace", &self.namespace)
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("queue", &self.queue)
            .field("batch", &self.batch)
            .field("groups", &self.groups)
            .field("username", &self.username)
            .field("password_file", &self.password_file)
            .field("ca", &self.ca)
            .field("cert", &self.cert)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::Bytes(_) => f.write_str("Bytes(..)"),
            Pem::Path(path) => f.debug_tuple("Path").field(path).finish(),
        }
    }
}

impl From<PathBuf> for Pem {
    fn from(path: PathBuf) -> Self {
        Pem::Path(path)
    }
}

impl From<Vec<u8>> for Pem {
    fn from(bytes: Vec<u8>) -> Self {
        Pem::Bytes(bytes)
    }
}

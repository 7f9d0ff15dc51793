//! What may be chosen of a store, beside its URL.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_core::Micros;
use tollgate_store::{ManualClock, REQUEST_ID_HORIZON};

use crate::names::SLOTS;
use crate::open_error::OpenError;

/// What may be chosen of a [`RedisStore`](crate::RedisStore). The default is right for most.
///
/// # Example
/// ```
/// use tollgate_redis::RedisOptions;
/// let options = RedisOptions { namespace: "shop".to_owned(), ..RedisOptions::default() };
/// assert_eq!(options.connections, 2);
/// ```
#[derive(Clone)]
pub struct RedisOptions {
    /// How the names of all keys begin: letters, digits, `_`, `-` and `.`. `tollgate` if not said.
    pub namespace: String,
    /// How many connections there are to each node: 2 if not said.
    pub connections: usize,
    /// How long a connection may take to be made: 1 s if not said.
    pub connect_timeout: Duration,
    /// How long a call may take: 500 ms if not said. After it the call's outcome is unknown, and its
    /// connection is replaced.
    pub call_timeout: Duration,
    /// The most requests that wait for a node: 10,000 if not said. More are answered at once that
    /// there are too many.
    pub queue: usize,
    /// The most requests in one call: 64 if not said.
    pub batch: usize,
    /// How many groups keys are divided into on a cluster: 64 if not said. All keys of a group are
    /// in one slot, so that one call can carry them. It is written down in the store by the first
    /// who comes; whoever has another number then is refused.
    pub groups: u16,
    /// How long a request id is remembered: 30 s if not said.
    pub request_id_horizon: Micros,
    /// The user, in place of the URL's.
    pub username: Option<String>,
    /// The password, in place of the URL's.
    pub password: Option<String>,
    /// The file that holds the password, in place of the URL's: read anew for each connection, so it
    /// may be replaced while the store is open. The ends of lines after it are not part of it.
    pub password_file: Option<PathBuf>,
    /// The user of the sentinels, if they have users.
    pub sentinel_username: Option<String>,
    /// The password of the sentinels, if they ask for one.
    pub sentinel_password: Option<String>,
    /// The certificates to trust with TLS; the system's if not said.
    pub ca: Option<Pem>,
    /// The certificate to show with TLS, with those that vouch for it.
    pub cert: Option<Pem>,
    /// The private key of the certificate to show.
    pub key: Option<Pem>,
    /// Decides by this clock in place of the server's: for tests, and for logs replayed at their own
    /// time.
    #[doc(hidden)]
    pub clock: Option<ManualClock>,
    /// With a clock: how many entries of a log stand in its key, so that tests meet long ones.
    #[doc(hidden)]
    pub short_log: Option<u16>,
}

/// A certificate or key in PEM.
#[derive(Clone)]
pub enum Pem {
    /// The text itself.
    Bytes(Vec<u8>),
    /// A file, read anew for each connection: it may be replaced while the store is open.
    Path(PathBuf),
}

/// How names begin for everybody who has not chosen.
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
            groups: 64,
            request_id_horizon: REQUEST_ID_HORIZON,
            username: None,
            password: None,
            password_file: None,
            sentinel_username: None,
            sentinel_password: None,
            ca: None,
            cert: None,
            key: None,
            clock: None,
            short_log: None,
        }
    }
}

/// The most requests of a call: what the script numbers in one call.
const MAX_BATCH: usize = 500;

impl RedisOptions {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let wrong =
            |name, value: &dyn fmt::Display, remedy| Err(OpenError::option(name, value, remedy));
        if self.namespace.is_empty() || self.namespace.len() > 64 {
            return wrong("namespace", &self.namespace, "write 1 to 64 characters");
        }
        if !self.namespace.chars().all(is_plain) {
            return wrong(
                "namespace",
                &self.namespace,
                "write letters, digits, '_', '-' and '.' only",
            );
        }
        if !(1..=64).contains(&self.connections) {
            return wrong("connections", &self.connections, "write a number from 1 to 64");
        }
        if !(1..=MAX_BATCH).contains(&self.batch) {
            return wrong("batch", &self.batch, "write a number from 1 to 500");
        }
        if self.queue == 0 {
            return wrong("queue", &self.queue, "write a number of at least 1");
        }
        if !(1..=SLOTS).contains(&self.groups) {
            return wrong("groups", &self.groups, "write a number from 1 to 16384");
        }
        if self.call_timeout < Duration::from_millis(1) {
            return wrong("call_timeout", &"", "write a time of at least 1 ms");
        }
        if self.connect_timeout < Duration::from_millis(1) {
            return wrong("connect_timeout", &"", "write a time of at least 1 ms");
        }
        if let (Some(_), Some(file)) = (&self.password, &self.password_file) {
            let remedy = "leave it out, or the option password: there is one password";
            return wrong("password_file", &file.display(), remedy);
        }
        match (&self.cert, &self.key) {
            (Some(_), None) => wrong("cert", &"", "give the option key, its private key, as well"),
            (None, Some(_)) => wrong("key", &"", "give the option cert, its certificate, as well"),
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

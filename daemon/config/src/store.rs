//! The store.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tollgate::{
    Limiter, LimiterBuilder, ManualClock, MemoryLimiter, MemoryLimiterBuilder, TableFull,
    masked_url,
};

use tollgate_document::ConfigError;

use super::fields::{Invalid, SectionReader};

/// The store for the state of limits: memory, Redis or Valkey.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The URL.
    pub url: StoreUrl,
    /// The snapshot directory, if any.
    pub data: Option<PathBuf>,
    /// The interval between snapshots.
    pub snapshot_interval: Duration,
    /// The maximum number of keys in memory.
    pub max_keys: usize,
    /// The decision for a new key while the table is full.
    pub table_full: TableFull,
    /// The number of connections to each Redis server.
    pub connections: usize,
    /// The deadline of a decision.
    pub deadline: Duration,
    /// The timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// The CA bundle for TLS; the system's by default.
    pub ca: Option<PathBuf>,
    /// The client certificate for TLS.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// The user name, instead of the one in the URL.
    pub username: Option<String>,
    /// A file that contains the password, instead of the one in the URL.
    pub password_file: Option<PathBuf>,
    /// The user name for sentinels. Not settable in the file.
    pub sentinel_username: Option<String>,
    /// The password for sentinels. Not settable in the file.
    pub sentinel_password: Option<Password>,
}

/// A password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Box<str>);

impl From<&str> for Password {
    fn from(text: &str) -> Self {
        Password(text.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// The URL of a store, which is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(Box<str>);

impl StoreUrl {
    /// Whether this is the memory store.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        &*self.0 == "memory"
    }

    /// The URL with its password. Do not print it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for StoreUrl {
    fn from(url: &str) -> Self {
        StoreUrl(url.into())
    }
}

/// Omits the password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked_url(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// The defaults in the table.
impl Default for StoreConfig {
    fn default() -> Self {
        super::Config::default().store
    }
}

impl StoreConfig {
    /// A builder of a limiter in memory with this configuration.
    pub fn builder(&self) -> MemoryLimiterBuilder {
        MemoryLimiter::builder().max_keys(self.max_keys).table_full(self.table_full)
    }

    /// Opens the store with a namespace. A Redis store connects in the background, in the current
    /// tokio runtime; an unreachable server is not an error.
    ///
    /// # Errors
    /// A field is invalid, or a file cannot be read.
    pub async fn open(&self, namespace: &str) -> Result<Limiter, ConfigError> {
        self.check()?;
        if self.url.is_memory() {
            return Ok(self.builder().build().into());
        }
        let opened = self.redis(namespace)?.open(self.url.as_str()).await;
        opened.map_err(|error| ConfigError::new(error.to_string()).with_field("store"))
    }

    /// Opens the store with a manual clock, as a replay does.
    ///
    /// # Errors
    /// As [`StoreConfig::open`].
    pub async fn open_at(
        &self,
        namespace: &str,
        clock: ManualClock,
    ) -> Result<Limiter, ConfigError> {
        self.check()?;
        if self.url.is_memory() {
            return Ok(self.builder().clock(clock).build().into());
        }
        let opened = self.redis(namespace)?.clock(clock).open(self.url.as_str()).await;
        opened.map_err(|error| ConfigError::new(error.to_string()).with_field("store"))
    }

    fn redis(&self, namespace: &str) -> Result<LimiterBuilder, ConfigError> {
        let mut builder = Limiter::builder()
            .namespace(namespace)
            .connections(self.connections)
            .deadline(self.deadline)
            .connect_timeout(self.connect_timeout);
        if let Some(ca) = &self.ca {
            builder = builder.ca(ca.clone());
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            builder = builder.client_certificate(cert.clone(), key.clone());
        }
        if let Some(username) = &self.username {
            builder = builder.username(username);
        }
        if let Some(password) = &self.sentinel_password {
            builder = builder.sentinel_login(self.sentinel_username.as_deref(), &*password.0);
        }
        // The store reads the file for each connection; an unreadable file is reported before the
        // first one.
        self.check_password_file()?;
        if let Some(file) = &self.password_file {
            builder = builder.password_file(file);
        }
        Ok(builder)
    }

    /// Checks that the password file can be read.
    pub(super) fn check_password_file(&self) -> Result<(), ConfigError> {
        let Some(file) = &self.password_file else { return Ok(()) };
        let reason = match fs::read_to_string(file) {
            Err(error) => format!("cannot be read: {error}"),
            Ok(password) if password.trim_end_matches(['\r', '\n']).is_empty() => {
                "the file is empty; write the password into it, or remove store.password_file"
                    .to_owned()
            }
            Ok(_) => return Ok(()),
        };
        let error = ConfigError::new(format!("{}: {reason}", file.display()));
        Err(error.with_field("store.password_file").with_location(file, None, None))
    }

    /// Rejects fields that have no effect with this store.
    ///
    /// # Errors
    /// A field that applies only to the other kind of store differs from its default.
    pub fn check(&self) -> Result<(), ConfigError> {
        let usual = StoreConfig::default();
        let of_memory = [
            ("data", self.data != usual.data),
            ("snapshot_interval", self.snapshot_interval != usual.snapshot_interval),
            ("max_keys", self.max_keys != usual.max_keys),
            ("table_full", self.table_full != usual.table_full),
        ];
        let of_redis = [
            ("connections", self.connections != usual.connections),
            ("deadline", self.deadline != usual.deadline),
            ("connect_timeout", self.connect_timeout != usual.connect_timeout),
            ("ca", self.ca != usual.ca),
            ("cert", self.cert != usual.cert),
            ("key", self.key != usual.key),
            ("username", self.username != usual.username),
            ("password_file", self.password_file != usual.password_file),
        ];
        let wrong = if self.url.is_memory() { &of_redis[..] } else { &of_memory };
        if let Some((name, _)) = wrong.iter().find(|(_, differs)| *differs) {
            return Err(self.misplaced(name));
        }
        let (field, other) = match (&self.cert, &self.key) {
            (Some(_), None) => ("cert", "key"),
            (None, Some(_)) => ("key", "cert"),
            _ => return Ok(()),
        };
        let error = ConfigError::new(format!("requires store.{other}; add it"));
        Err(error.with_field(format!("store.{field}")))
    }

    fn misplaced(&self, name: &str) -> ConfigError {
        let message = if self.url.is_memory() {
            "applies to Redis stores only, but store.url is memory; remove it, or set store.url to \
             a server such as redis://127.0.0.1:6379"
                .to_owned()
        } else {
            format!("applies to the memory store only, but store.url is {}; remove it", self.url)
        };
        ConfigError::new(message).with_field(format!("store.{name}"))
    }

    /// Reads the section. If the configuration is incomplete and has no URL, the fields are not
    /// checked against the store.
    pub(super) fn read(
        fields: &SectionReader<'_>,
        is_complete: bool,
    ) -> Result<StoreConfig, Invalid> {
        let store = StoreConfig {
            url: fields.get("url")?,
            data: fields.get("data")?,
            snapshot_interval: fields.get("snapshot_interval")?,
            max_keys: fields.get("max_keys")?,
            table_full: fields.get("table_full")?,
            connections: fields.get("connections")?,
            deadline: fields.get("deadline")?,
            connect_timeout: fields.get("connect_timeout")?,
            ca: fields.get("ca")?,
            cert: fields.get("cert")?,
            key: fields.get("key")?,
            username: fields.get("username")?,
            password_file: fields.get("password_file")?,
            sentinel_username: None,
            sentinel_password: None,
        };
        if is_complete || fields.field_entry("url").is_some() {
            store.check().map_err(|error| {
                let field = error.field().and_then(|field| field.strip_prefix("store."));
                fields.report(field.unwrap_or("url"), error.message())
            })?;
        }
        Ok(store)
    }
}

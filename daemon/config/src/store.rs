//! The store.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate::{
    Limiter, LimiterBuilder, ManualClock, MemoryLimiter, MemoryLimiterBuilder, RedisOptions,
    RedisStore, TableFull, masked_url,
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
    /// The maximum number of bytes of keys, blocks and request ids in memory.
    pub max_bytes: usize,
    /// The decision for a new key while the table is full.
    pub table_full: TableFull,
    /// The number of connections to each Redis server.
    pub connections: usize,
    /// The deadline of a decision.
    pub deadline: Duration,
    /// The timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// The timeout of a call.
    pub call_timeout: Duration,
    /// The maximum number of requests that wait for a server.
    pub queue: usize,
    /// The maximum number of requests in a call.
    pub batch: usize,
    /// The number of groups of the keys, if it is not the default of the kind of server.
    pub groups: Option<u16>,
    /// How long request ids are remembered.
    pub request_id_horizon: Duration,
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
    /// For announced addresses, the addresses to connect to instead.
    pub address_map: BTreeMap<String, String>,
    /// The name in the servers' certificates, instead of their host.
    pub tls_server_name: Option<String>,
    /// The user name for sentinels.
    pub sentinel_username: Option<String>,
    /// A file that contains the password for sentinels.
    pub sentinel_password_file: Option<PathBuf>,
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
        MemoryLimiter::builder()
            .max_keys(self.max_keys)
            .max_bytes(self.max_bytes)
            .table_full(self.table_full)
            .request_id_horizon(self.request_id_horizon)
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

    /// Opens a Redis store without a limiter: the process then does not count among those that share
    /// the limits. It connects in the background, as with [`StoreConfig::open`].
    ///
    /// # Errors
    /// As [`StoreConfig::open`]; the store in memory is an error, too.
    pub fn open_redis(&self, namespace: &str) -> Result<RedisStore, ConfigError> {
        self.check()?;
        if self.url.is_memory() {
            let message = "the store is memory; write the URL of a Redis or Valkey server";
            return Err(ConfigError::new(message).with_field("store.url"));
        }
        RedisStore::open(self.url.as_str(), self.redis_options(namespace)?)
            .map_err(|error| ConfigError::new(error.to_string()).with_field("store"))
    }

    fn redis(&self, namespace: &str) -> Result<LimiterBuilder, ConfigError> {
        let options = self.redis_options(namespace)?;
        Ok(Limiter::builder().deadline(self.deadline).redis_options(options))
    }

    fn redis_options(&self, namespace: &str) -> Result<RedisOptions, ConfigError> {
        // The store reads the files each second and for each connection; an unreadable file is
        // reported before the first one.
        if let Some(error) = self.password_file_errors().next() {
            return Err(error);
        }
        Ok(RedisOptions {
            namespace: namespace.to_owned(),
            connections: self.connections,
            connect_timeout: self.connect_timeout,
            call_timeout: self.call_timeout,
            queue: self.queue,
            batch: self.batch,
            groups: self.groups,
            request_id_horizon: self.request_id_horizon.into(),
            username: self.username.clone(),
            password_file: self.password_file.clone(),
            sentinel_username: self.sentinel_username.clone(),
            sentinel_password: self
                .sentinel_password
                .as_ref()
                .map(|password| password.0.to_string()),
            sentinel_password_file: self.sentinel_password_file.clone(),
            ca: self.ca.clone().map(Into::into),
            cert: self.cert.clone().map(Into::into),
            key: self.key.clone().map(Into::into),
            address_map: self.address_map.clone(),
            tls_server_name: self.tls_server_name.clone(),
            ..RedisOptions::default()
        })
    }

    /// Returns an error for each password file that cannot be used.
    pub(super) fn password_file_errors(&self) -> impl Iterator<Item = ConfigError> {
        let files = [
            ("password_file", &self.password_file),
            ("sentinel_password_file", &self.sentinel_password_file),
        ];
        files.into_iter().filter_map(|(field, file)| password_file_error(field, file.as_deref()?))
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
            ("max_bytes", self.max_bytes != usual.max_bytes),
            ("table_full", self.table_full != usual.table_full),
        ];
        let of_redis = [
            ("connections", self.connections != usual.connections),
            ("deadline", self.deadline != usual.deadline),
            ("connect_timeout", self.connect_timeout != usual.connect_timeout),
            ("call_timeout", self.call_timeout != usual.call_timeout),
            ("queue", self.queue != usual.queue),
            ("batch", self.batch != usual.batch),
            ("groups", self.groups != usual.groups),
            ("ca", self.ca != usual.ca),
            ("cert", self.cert != usual.cert),
            ("key", self.key != usual.key),
            ("username", self.username != usual.username),
            ("password_file", self.password_file != usual.password_file),
            ("address_map", self.address_map != usual.address_map),
            ("tls_server_name", self.tls_server_name != usual.tls_server_name),
            ("sentinel_username", self.sentinel_username != usual.sentinel_username),
            ("sentinel_password_file", self.sentinel_password_file != usual.sentinel_password_file),
        ];
        let wrong = if self.url.is_memory() { &of_redis[..] } else { &of_memory };
        if let Some((name, _)) = wrong.iter().find(|(_, differs)| *differs) {
            return Err(self.misplaced(name));
        }
        let (scheme, _) = self.url.as_str().split_once("://").unwrap_or_default();
        let is_cluster = scheme.ends_with("+cluster");
        let is_sentinel = scheme.ends_with("+sentinel");
        let is_tls = scheme.starts_with("rediss") || scheme.starts_with("valkeys");
        for (name, is_set, has_effect) in [
            ("address_map", !self.address_map.is_empty(), is_cluster || is_sentinel),
            ("sentinel_username", self.sentinel_username.is_some(), is_sentinel),
            ("sentinel_password_file", self.sentinel_password_file.is_some(), is_sentinel),
            ("tls_server_name", self.tls_server_name.is_some(), is_tls),
        ] {
            if is_set && !has_effect {
                let message = format!("has no effect with store.url {}; remove it", self.url);
                return Err(ConfigError::new(message).with_field(format!("store.{name}")));
            }
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
            max_bytes: fields.get("max_bytes")?,
            table_full: fields.get("table_full")?,
            connections: fields.get("connections")?,
            deadline: fields.get("deadline")?,
            connect_timeout: fields.get("connect_timeout")?,
            call_timeout: fields.get("call_timeout")?,
            queue: fields.get("queue")?,
            batch: fields.get("batch")?,
            groups: fields.get("groups")?,
            request_id_horizon: fields.get("request_id_horizon")?,
            ca: fields.get("ca")?,
            cert: fields.get("cert")?,
            key: fields.get("key")?,
            username: fields.get("username")?,
            password_file: fields.get("password_file")?,
            address_map: fields.texts("address_map")?,
            tls_server_name: fields.get("tls_server_name")?,
            sentinel_username: fields.get("sentinel_username")?,
            sentinel_password_file: fields.get("sentinel_password_file")?,
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

fn password_file_error(field: &str, file: &Path) -> Option<ConfigError> {
    let reason = match fs::read_to_string(file) {
        Err(error) => format!("cannot be read: {error}"),
        Ok(password) if password.trim_end_matches(['\r', '\n']).is_empty() => {
            format!("the file is empty; write the password into it, or remove store.{field}")
        }
        Ok(_) => return None,
    };
    let error = ConfigError::new(format!("{}: {reason}", file.display()));
    Some(error.with_field(format!("store.{field}")).with_location(file, None, None))
}

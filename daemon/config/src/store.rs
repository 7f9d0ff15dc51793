//! Where state lives.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tollgate::{
    Limiter, LimiterBuilder, ManualClock, MemoryLimiter, MemoryLimiterBuilder, TableFull,
    masked_url,
};

use super::fields::{Broken, Fields, Meaning};
use super::schema::Value;
use tollgate_document::ConfigError;

/// Where state lives: in memory, or on Redis or Valkey.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// Which store.
    pub url: StoreUrl,
    /// Where memory is kept over a restart, if it is.
    pub data: Option<PathBuf>,
    /// How often it is written there.
    pub snapshot_interval: Duration,
    /// The most keys in memory.
    pub max_keys: usize,
    /// What a new key is told when memory's table is full.
    pub table_full: TableFull,
    /// How many connections there are to each Redis.
    pub connections: usize,
    /// How long a decision may take.
    pub deadline: Duration,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// The certificates to trust with TLS; the system's if not said.
    pub ca: Option<PathBuf>,
    /// The certificate to show with TLS.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// Who logs in, in place of the URL's user.
    pub username: Option<String>,
    /// The file that holds the password, in place of the URL's.
    pub password_file: Option<PathBuf>,
    /// Who logs in at sentinels, which have users of their own. No field of the file says it.
    pub sentinel_username: Option<String>,
    /// Its password. No field of the file says it.
    pub sentinel_password: Option<Password>,
}

/// A password. It is not shown.
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

/// The URL of a store. It is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(Box<str>);

impl StoreUrl {
    /// Whether it is this process's memory.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        &*self.0 == "memory"
    }

    /// The URL with its password, not to be printed.
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

/// Without its password.
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

/// What the table says.
impl Default for StoreConfig {
    fn default() -> Self {
        super::Config::default().store
    }
}

impl Meaning for TableFull {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word("deny") => Some(TableFull::Deny),
            Value::Word("allow") => Some(TableFull::Allow),
            _ => None,
        }
    }
}

impl StoreConfig {
    /// A limiter in memory as this says, to be built.
    pub fn builder(&self) -> MemoryLimiterBuilder {
        MemoryLimiter::builder().max_keys(self.max_keys).table_full(self.table_full)
    }

    /// Opens the store, under a namespace. One on Redis connects in this tokio runtime; that it is
    /// away is no error.
    ///
    /// # Errors
    /// The URL, or a field that goes with it, is not what it should be; a file cannot be read.
    pub async fn open(&self, namespace: &str) -> Result<Limiter, ConfigError> {
        self.check()?;
        if self.url.is_memory() {
            return Ok(self.builder().build().into());
        }
        let opened = self.redis(namespace)?.open(self.url.as_str()).await;
        opened.map_err(|error| ConfigError::new(error.to_string()).with_field("store"))
    }

    /// Opens the store at somebody else's time, as a replay does.
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
        // The store reads it for each connection; that it cannot is told before the first.
        self.check_password_file()?;
        if let Some(file) = &self.password_file {
            builder = builder.password_file(file);
        }
        Ok(builder)
    }

    /// Refuses a file of the password that cannot be read.
    pub(super) fn check_password_file(&self) -> Result<(), ConfigError> {
        let Some(file) = &self.password_file else { return Ok(()) };
        let refused = |why: String| {
            let message = format!("{}: {why}", file.display());
            ConfigError::new(message)
                .with_field("store.password_file")
                .with_location(file, None, None)
        };
        let read = fs::read_to_string(file);
        let password = read.map_err(|error| refused(format!("it cannot be read: {error}")))?;
        if password.trim_end_matches(['\r', '\n']).is_empty() {
            return Err(refused("it is empty; write the password, or leave it out".to_owned()));
        }
        Ok(())
    }

    /// Refuses what means nothing to this store: whoever wrote it expects something of it.
    ///
    /// # Errors
    /// A field that is not at its default is of another store.
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
        if let Some((name, _)) = wrong.iter().find(|(_, is_said)| *is_said) {
            return Err(self.misplaced(name));
        }
        match (&self.cert, &self.key) {
            (Some(_), None) => {
                Err(ConfigError::new("write store.key too").with_field("store.cert"))
            }
            (None, Some(_)) => {
                Err(ConfigError::new("write store.cert too").with_field("store.key"))
            }
            _ => Ok(()),
        }
    }

    fn misplaced(&self, name: &str) -> ConfigError {
        let message = if self.url.is_memory() {
            "it is of a store on Redis, and this one is memory: leave it out, or name the server in \
             store.url, such as redis://127.0.0.1:6379"
                .to_owned()
        } else {
            format!("it is of memory, and this store is at {}: leave it out", self.url)
        };
        ConfigError::new(message).with_field(format!("store.{name}"))
    }

    /// Reads what is written. Where not all of it is there yet, a store may still be named.
    pub(super) fn read(fields: &Fields<'_>, is_whole: bool) -> Result<StoreConfig, Broken> {
        let url: String = fields.get("url")?;
        let store = StoreConfig {
            url: url.as_str().into(),
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
        if is_whole || fields.said("url").is_some() {
            store.check().map_err(|error| {
                let field = error.field().and_then(|field| field.strip_prefix("store."));
                fields.report(field.unwrap_or("url"), error.message())
            })?;
        }
        Ok(store)
    }
}

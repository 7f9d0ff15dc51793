//! Configuration of a limiter on Redis or Valkey.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "tls-rustls")]
use tollgate_redis::Pem;
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{Clock, ManualClock, OpenError};

use super::remote::Remote;
use super::url::{self, masked_url};
use super::{Backend, Limiter};
use crate::memory::MemoryLimiter;

const DEFAULT_DEADLINE: Duration = Duration::from_millis(15);

/// Configures and opens a [`Limiter`]. The in-memory store ignores the options of Redis, so that a
/// program can switch stores by changing the URL alone.
///
/// # Examples
/// ```no_run
/// # async fn open() -> Result<(), tollgate::OpenError> {
/// use std::time::Duration;
/// use tollgate::Limiter;
///
/// let limiter = Limiter::builder()
///     .namespace("shop")
///     .deadline(Duration::from_millis(5))
///     .open("redis://127.0.0.1:6379")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LimiterBuilder {
    deadline: Duration,
    redis: RedisOptions,
}

impl Default for LimiterBuilder {
    fn default() -> Self {
        LimiterBuilder { deadline: DEFAULT_DEADLINE, redis: RedisOptions::default() }
    }
}

impl LimiterBuilder {
    /// Sets the deadline of each decision; the default is 15 ms. When it passes, the policy's
    /// [`OnStoreError`](crate::OnStoreError) decides.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the prefix of all keys on the server: letters, digits, `_`, `-` and `.`. It separates
    /// installations on one server; the default is `tollgate`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.redis.namespace = namespace.into();
        self
    }

    /// Sets the number of connections to each node; the default is 2.
    pub fn connections(mut self, connections: usize) -> Self {
        self.redis.connections = connections;
        self
    }

    /// Sets the timeout of each attempt to connect; the default is 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.redis.connect_timeout = timeout;
        self
    }

    /// Sets the user name, in place of the URL's.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.redis.username = Some(username.into());
        self
    }

    /// Sets the password, in place of the URL's.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.redis.password = Some(password.into());
        self
    }

    /// Reads the password from a file, in place of the URL's. The file is read again for each
    /// connection, so it can be replaced while the limiter is open.
    pub fn password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.redis.password_file = Some(file.into());
        self
    }

    /// Sets the credentials for the sentinels, which are separate from those of the servers.
    pub fn sentinel_login(mut self, username: Option<&str>, password: impl Into<String>) -> Self {
        self.redis.sentinel_username = username.map(str::to_owned);
        self.redis.sentinel_password = Some(password.into());
        self
    }

    /// Sets the CA bundle for TLS, in PEM as a path or as bytes; the default is the system's roots.
    #[cfg(feature = "tls-rustls")]
    pub fn ca(mut self, ca: impl Into<Pem>) -> Self {
        self.redis.ca = Some(ca.into());
        self
    }

    /// Sets the client certificate for TLS and its private key, in PEM as a path or as bytes.
    #[cfg(feature = "tls-rustls")]
    pub fn client_certificate(mut self, cert: impl Into<Pem>, key: impl Into<Pem>) -> Self {
        (self.redis.cert, self.redis.key) = (Some(cert.into()), Some(key.into()));
        self
    }

    /// Replaces all options of the store on Redis, including those that this builder has set.
    pub fn redis_options(mut self, options: RedisOptions) -> Self {
        self.redis = options;
        self
    }

    /// Uses this clock in place of the server's, for tests. All limiters that share a namespace need
    /// the same clock.
    pub fn clock(mut self, clock: ManualClock) -> Self {
        self.redis.clock = Some(clock);
        self
    }

    /// Opens a store on Redis or Valkey; see [`Limiter::open`].
    ///
    /// # Errors
    /// As [`open`](Self::open), and if the URL names another kind of store.
    pub async fn redis(self, url: &str) -> Result<Limiter, OpenError> {
        if !url::is_redis(url) {
            return Err(OpenError::Unknown(masked_url(url).into()));
        }
        self.open(url).await
    }

    /// Opens the store at a URL; see [`Limiter::open`].
    ///
    /// # Errors
    /// Returns an error if the URL or an option is invalid, or if there is no tokio runtime. An
    /// unreachable server is no error.
    pub async fn open(self, url: &str) -> Result<Limiter, OpenError> {
        if url == "memory" {
            let mut memory = MemoryLimiter::builder();
            if let Some(clock) = self.redis.clock {
                memory = memory.clock(clock);
            }
            return Ok(memory.build().into());
        }
        url::check_scheme(url)?;
        let store = RedisStore::open(url, self.redis.clone())?;
        // Wait, so that the first decisions do not miss their deadline. A failure is not final: the
        // store keeps trying to connect.
        let _ = tokio::time::timeout(self.redis.connect_timeout, store.ready()).await;
        Ok(self.with_store(store))
    }

    /// Returns a limiter on a store that is open already. Of this builder, only the deadline and the
    /// clock apply.
    #[must_use]
    pub fn with_store(self, store: RedisStore) -> Limiter {
        let clock = self.redis.clock.map_or_else(Clock::system, Clock::Manual);
        Limiter(Backend::Redis(Remote::new(store, self.deadline, clock)))
    }
}

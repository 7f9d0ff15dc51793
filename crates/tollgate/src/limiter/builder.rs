//! How a limiter on Redis or Valkey is configured.

use std::path::PathBuf;
use std::time::Duration;

use tollgate_redis::{Pem, RedisOptions, RedisStore};
use tollgate_store::{Clock, ManualClock};

use super::remote::Remote;
use super::{Choice, Limiter, OpenError};
use crate::memory::MemoryLimiter;

/// How long a decision may take unless said otherwise.
const DEADLINE: Duration = Duration::from_millis(15);

/// How a [`Limiter`] is opened. What is said of Redis has no meaning on memory, so that code can move
/// from one to the other by its URL alone.
///
/// # Example
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
        LimiterBuilder { deadline: DEADLINE, redis: RedisOptions::default() }
    }
}

impl LimiterBuilder {
    /// Answers every decision within this time, 15 ms unless told otherwise. Where the store has not
    /// answered by then the policy's [`OnStoreError`](crate::OnStoreError) does.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Begins the names of all keys so: letters, digits, `_`, `-` and `.`. It keeps two
    /// installations on one server apart; `tollgate` unless told otherwise.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.redis.namespace = namespace.into();
        self
    }

    /// Makes this many connections to each node, 2 unless told otherwise.
    pub fn connections(mut self, connections: usize) -> Self {
        self.redis.connections = connections;
        self
    }

    /// Gives up making a connection after this time, 1 s unless told otherwise, and tries again.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.redis.connect_timeout = timeout;
        self
    }

    /// Logs in as this user, in place of the URL's.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.redis.username = Some(username.into());
        self
    }

    /// Logs in with this password, in place of the URL's.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.redis.password = Some(password.into());
        self
    }

    /// Logs in with the password in this file, in place of the URL's. It is read anew for each
    /// connection, so it may be replaced while the limiter is open.
    pub fn password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.redis.password_file = Some(file.into());
        self
    }

    /// Logs in at the sentinels, which have users and passwords of their own.
    pub fn sentinel_login(mut self, username: Option<&str>, password: impl Into<String>) -> Self {
        self.redis.sentinel_username = username.map(str::to_owned);
        self.redis.sentinel_password = Some(password.into());
        self
    }

    /// Trusts these certificates with TLS, in PEM as a path or as bytes; the system's unless told
    /// otherwise.
    pub fn ca(mut self, ca: impl Into<Pem>) -> Self {
        self.redis.ca = Some(ca.into());
        self
    }

    /// Shows this certificate with TLS, with its private key, both in PEM as a path or as bytes.
    pub fn client_certificate(mut self, cert: impl Into<Pem>, key: impl Into<Pem>) -> Self {
        (self.redis.cert, self.redis.key) = (Some(cert.into()), Some(key.into()));
        self
    }

    /// Takes all that can be chosen of a store on Redis from here, in place of what was said before.
    pub fn redis(mut self, options: RedisOptions) -> Self {
        self.redis = options;
        self
    }

    /// Decides by this clock in place of the server's: for your tests. All who share a namespace
    /// must then show the same time.
    pub fn clock(mut self, clock: ManualClock) -> Self {
        self.redis.clock = Some(clock);
        self
    }

    /// Opens the store of a URL, as [`Limiter::open`] does.
    ///
    /// # Errors
    /// There is no store of that kind, the URL is not one, or there is no tokio runtime to connect
    /// in. That a server is away is no error.
    pub async fn open(self, url: &str) -> Result<Limiter, OpenError> {
        if url == "memory" {
            let memory = MemoryLimiter::builder();
            let clock = self.redis.clock;
            return Ok(match clock {
                Some(clock) => memory.clock(clock),
                None => memory,
            }
            .build()
            .into());
        }
        Limiter::check_scheme(url)?;
        let store = RedisStore::open(url, self.redis.clone()).map_err(OpenError::Redis)?;
        // The first decisions would else be late. Who is not there yet is tried again later.
        let _ = tokio::time::timeout(self.redis.connect_timeout, store.ready()).await;
        Ok(self.with_store(store))
    }

    /// A limiter on a store that is open already; only the deadline is taken from here.
    #[must_use]
    pub fn with_store(self, store: RedisStore) -> Limiter {
        let clock = self.redis.clock.map_or_else(Clock::system, Clock::Manual);
        Limiter(Choice::Redis(Remote::new(store, self.deadline, clock)))
    }
}

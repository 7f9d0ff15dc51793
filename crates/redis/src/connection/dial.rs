//! Making connections.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, RedisConnectionInfo};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tollgate_state::{Failure, FailureKind};

#[cfg(feature = "tls-rustls")]
use super::tls::Tls;
use super::{CommandChannel, Connection};
use crate::credentials::Credentials;
use crate::error;
use crate::network::Network;
use crate::options::RedisOptions;
use crate::script::ScriptForm;
use crate::url::Address;

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    info: RedisConnectionInfo,
    credentials: Arc<Credentials>,
    #[cfg(feature = "tls-rustls")]
    tls: Option<Tls>,
    /// Replaces TCP and TLS in simulations.
    network: Option<Arc<dyn Network>>,
    connect_timeout: Duration,
    call_timeout: Duration,
}

/// Called with each message that the server pushes, in the order of the server's replies.
pub(crate) type PushHandler = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// The timeout of a call on a connection with many pushed messages, which arrive before its reply.
const PUSH_CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP keepalive: the idle time before the first probe, the interval, and the number of probes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(5);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
const KEEPALIVE_TRIES: u32 = 3;
/// How long sent data may remain unacknowledged before the connection is considered lost.
const USER_TIMEOUT: Duration = Duration::from_secs(3);

impl Dialer {
    #[cfg_attr(not(feature = "tls-rustls"), expect(unused_variables, reason = "no TLS"))]
    pub(crate) fn new(
        options: &RedisOptions,
        credentials: &Arc<Credentials>,
        database: u32,
        is_tls: bool,
    ) -> Dialer {
        // Users with minimal permissions cannot set the name of the client library.
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let info = info.set_db(i64::from(database));
        Dialer {
            info,
            credentials: Arc::clone(credentials),
            #[cfg(feature = "tls-rustls")]
            tls: is_tls.then(|| Tls::new(options)),
            network: options.network.clone(),
            connect_timeout: options.connect_timeout,
            call_timeout: options.call_timeout,
        }
    }

    /// Returns the number of the database.
    pub(crate) fn database(&self) -> i64 {
        self.info.db()
    }

    /// Makes a connection; `on_close` is called when it closes.
    pub(crate) async fn dial(
        &self,
        address: &Address,
        on_close: impl Fn() + Clone + Send + 'static,
    ) -> Result<Connection, Failure> {
        self.dial_with(address, on_close, None).await
    }

    /// Makes a connection with RESP3 if there is a handler for the messages that the server pushes.
    pub(crate) async fn dial_with(
        &self,
        address: &Address,
        on_close: impl Fn() + Clone + Send + 'static,
        on_push: Option<PushHandler>,
    ) -> Result<Connection, Failure> {
        let login = self.log_in(address, on_close, on_push);
        let dialed = tokio::time::timeout(self.connect_timeout, login);
        let result = dialed.await.unwrap_or_else(|_| {
            let message = format!("no connection within {:?}", self.connect_timeout);
            Err(Failure::new(FailureKind::Unreachable, message))
        });
        result.map_err(|error| Failure::new(error.kind, format!("{address}: {}", error.message)))
    }

    /// Connects with the first password that the server accepts.
    async fn log_in(
        &self,
        address: &Address,
        on_close: impl Fn() + Clone + Send + 'static,
        on_push: Option<PushHandler>,
    ) -> Result<Connection, Failure> {
        let mut rejection = Failure::new(FailureKind::WrongPassword, "no password");
        for password in self.credentials.passwords().await? {
            let mut info = self.credentials.apply(self.info.clone(), password.as_deref());
            if on_push.is_some() {
                info = info.set_protocol(ProtocolVersion::RESP3);
            }
            match self.dial_at(address, &info, on_close.clone(), on_push.clone()).await {
                Err(failure) if failure.kind == FailureKind::WrongPassword => rejection = failure,
                result => {
                    if let (Ok(_), Some(password)) = (&result, &password) {
                        self.credentials.record_accepted(password);
                    }
                    return result;
                }
            }
        }
        Err(rejection)
    }

    async fn dial_at(
        &self,
        address: &Address,
        info: &RedisConnectionInfo,
        on_close: impl Fn() + Send + 'static,
        on_push: Option<PushHandler>,
    ) -> Result<Connection, Failure> {
        match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(unreachable)?;
                self.greet(stream, info, on_close, on_push).await
            }
            Address::Tcp { host, port } => {
                if let Some(network) = &self.network {
                    let stream = network.connect(host, *port).await.map_err(unreachable)?;
                    return self.greet(stream, info, on_close, on_push).await;
                }
                let stream = TcpStream::connect((&**host, *port)).await.map_err(unreachable)?;
                set_up(&stream).map_err(unreachable)?;
                #[cfg(feature = "tls-rustls")]
                if let Some(tls) = &self.tls {
                    return self
                        .greet(tls.wrap(host, stream).await?, info, on_close, on_push)
                        .await;
                }
                self.greet(stream, info, on_close, on_push).await
            }
        }
    }

    /// Logs in and selects the database.
    async fn greet(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        info: &RedisConnectionInfo,
        on_close: impl Fn() + Send + 'static,
        on_push: Option<PushHandler>,
    ) -> Result<Connection, Failure> {
        let timeout = match on_push {
            Some(_) => self.call_timeout.max(PUSH_CALL_TIMEOUT),
            None => self.call_timeout,
        };
        let mut config = AsyncConnectionConfig::new().set_response_timeout(Some(timeout));
        if let Some(on_push) = on_push {
            config = config.set_push_sender(move |push| {
                on_push(push);
                Ok::<(), Infallible>(())
            });
        }
        let result = MultiplexedConnection::new_with_config(info, stream, config).await;
        let (connection, driver) = result.map_err(error::from_connect)?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let driver = tokio::spawn(async move {
            driver.await;
            closed.store(true, Ordering::Release);
            on_close();
        });
        Ok(Connection {
            channel: CommandChannel { connection, form: ScriptForm::Function },
            is_closed,
            driver: driver.abort_handle(),
        })
    }
}

fn set_up(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_TRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreachable(error: std::io::Error) -> Failure {
    Failure::new(FailureKind::Unreachable, error.to_string())
}

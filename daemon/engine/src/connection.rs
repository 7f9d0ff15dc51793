//! Where a connection arrives, and its other end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

named_enum! {
    /// The kind of a listener.
    pub ListenerKind,
    /// The value of the label `listener`.
    fn as_str;
    /// The JSON API, forward auth and probes.
    Http = "http",
    /// Envoy's rate limit service.
    Grpc = "grpc",
    /// Redis clients.
    Resp = "resp",
    /// The metrics page and probes.
    Metrics = "metrics",
    /// The effective configuration and statistics, for debugging.
    Debug = "debug",
    /// The dashboard and its API.
    Admin = "admin",
}

/// One value for each kind of listener.
#[derive(Debug, Default)]
pub struct PerListener<T>([T; ListenerKind::ALL.len()]);

impl<T> PerListener<T> {
    /// The value of one kind.
    pub fn get(&self, kind: ListenerKind) -> &T {
        let [http, grpc, resp, metrics, debug, admin] = &self.0;
        match kind {
            ListenerKind::Http => http,
            ListenerKind::Grpc => grpc,
            ListenerKind::Resp => resp,
            ListenerKind::Metrics => metrics,
            ListenerKind::Debug => debug,
            ListenerKind::Admin => admin,
        }
    }
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// A TCP peer.
    Tcp(SocketAddr),
    /// A process on this machine that may open the socket's file.
    Unix,
}

impl PeerAddress {
    /// Whether the peer is on this machine.
    #[must_use]
    pub fn is_local(self) -> bool {
        match self {
            PeerAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
            PeerAddress::Unix => true,
        }
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddress::Tcp(address) => write!(f, "{address}"),
            PeerAddress::Unix => f.write_str("unix"),
        }
    }
}

/// Whether the client of a connection has authenticated: it has sent a valid token, or shown a
/// client certificate. The connections that have not are counted.
#[derive(Debug)]
pub struct Authentication {
    is_done: AtomicBool,
    pending: Arc<AtomicUsize>,
}

impl Authentication {
    /// The state of a new connection, which `pending` counts until its client authenticates or
    /// leaves.
    #[must_use]
    pub fn new(pending: Arc<AtomicUsize>) -> Self {
        pending.fetch_add(1, Ordering::Relaxed);
        Authentication { is_done: AtomicBool::new(false), pending }
    }

    /// Whether the client has authenticated.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// The client has authenticated.
    #[inline]
    pub fn finish(&self) {
        if !self.is_done() && !self.is_done.swap(true, Ordering::Relaxed) {
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Authentication {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What is known about a client from its certificate, which the listener has verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject, on one line and with bounded length, for the log.
    pub subject: String,
    /// The subject alternative names: DNS names in lower case, and URIs, which contain a colon.
    pub names: Vec<String>,
}

/// The other end of a connection, as logs and the audit identify it.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Its address.
    pub peer: PeerAddress,
    /// Its client certificate, if the listener requires one.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// Whether its listener is on a loopback address.
    pub has_loopback_listener: bool,
    /// Whether it has authenticated.
    pub authentication: Arc<Authentication>,
}

impl Remote {
    /// A peer without a client certificate, of a listener on another address than loopback.
    #[must_use]
    pub fn new(peer: PeerAddress) -> Self {
        // Nothing counts this connection.
        let authentication = Arc::new(Authentication::new(Arc::default()));
        Remote { peer, certificate: None, has_loopback_listener: false, authentication }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)?;
        match &self.certificate {
            Some(certificate) => write!(f, " ({})", certificate.subject),
            None => Ok(()),
        }
    }
}

//! A proxy that breaks connections at a chosen request.

mod faults;
mod relay;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Server;
use faults::{Fate, Faults};
use relay::Relay;

/// A proxy between clients and a server without TLS that parses requests and replies. Faults can
/// change at any time and apply to all connections.
///
/// `HELLO`, `CLIENT SETINFO` and other commands of the handshake count as requests;
/// [`only`](Self::only) restricts the count to some commands. In a cluster, clients connect to the
/// ports that the nodes announce; set `cluster-announce-port` to the proxy's port.
///
/// # Example
///
/// ```
/// use tollgate_testkit::{Connection, Proxy, Server};
///
/// let server = Server::start();
/// let proxy = Proxy::before(&server);
/// let mut client = Connection::to(&proxy.address())?;
/// proxy.cut_after_execution(1);
/// assert!(client.command(&["INCR", "k"]).is_err());
/// assert_eq!(server.command(&["GET", "k"]).text(), "1");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    server: Mutex<SocketAddr>,
    faults: Arc<Mutex<Faults>>,
    relays: Mutex<Vec<Weak<Relay>>>,
    is_stopped: AtomicBool,
}

impl Proxy {
    /// Starts a proxy for `server` on a free port. The server may restart.
    pub fn before(server: &Server) -> Self {
        let mut proxy = Self::to(SocketAddr::from((Ipv4Addr::LOCALHOST, server.port())));
        proxy.url = server.url_at(proxy.address.port());
        proxy
    }

    /// Starts a proxy for an address on a free port.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            faults: Arc::default(),
            relays: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accepting.accept(&listener));
        Self { url: format!("redis://{address}"), address, shared, acceptor: Some(acceptor) }
    }

    /// The server's URL, with the port of the proxy.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The proxy's port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Forwards new connections to another server, as a name that moves. Others stay open.
    pub fn move_to(&self, server: &Server) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
        *self.shared.server.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }

    /// The number of requests received.
    pub fn requests(&self) -> u64 {
        self.faults().requests
    }

    /// The number of connections accepted.
    pub fn connections(&self) -> u64 {
        self.faults().connections
    }

    /// Restricts the faults for the nth next request to these commands; an empty list means all.
    /// `FCALL` means those with keys: the others check new connections, at any time.
    pub fn only(&self, commands: &[&str]) {
        self.faults().only = commands.iter().map(|command| command.to_uppercase()).collect();
    }

    /// Closes the connection instead of forwarding the nth next request. Earlier requests still get
    /// their replies.
    pub fn cut_before(&self, nth: u64) {
        self.faults().plan(nth, Fate::CutBefore);
    }

    /// Forwards the nth next request and closes the connection instead of sending its reply.
    pub fn cut_after_execution(&self, nth: u64) {
        self.faults().plan(nth, Fate::CutAfterExecution);
    }

    /// Replies to the nth next request with `line`, such as `-LOADING …`. `executed` states whether
    /// the server still receives the request.
    pub fn replace_reply(&self, nth: u64, line: &str, executed: bool) {
        self.faults().plan(nth, Fate::Replace { line: line.to_owned(), executed });
    }

    /// Delays each reply. Replies of one connection are delayed one after the other.
    pub fn delay(&self, delay: Duration) {
        self.faults().delay = delay;
    }

    /// Forwards replies one byte per packet.
    pub fn split_bytes(&self, split_bytes: bool) {
        self.faults().split_bytes = split_bytes;
    }

    /// Accepts connections and requests and sends no replies. A connection that lost a reply stays
    /// silent afterwards; new ones work.
    pub fn blackhole(&self, blackhole: bool) {
        self.faults().blackhole = blackhole;
    }

    /// Clears all faults, including planned ones.
    pub fn clear_faults(&self) {
        self.faults().clear();
    }

    /// Closes all connections now.
    pub fn reset_connections(&self) {
        self.shared.close_all();
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.shared.faults()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        // The thread waits for a connection; this one ends the wait.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.shared.close_all();
    }
}

impl Shared {
    fn accept(&self, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_stopped.load(Ordering::SeqCst) {
                return;
            }
            // If the server is down, the client's connection closes at once.
            let Ok(relay) = client.and_then(|client| self.open_relay(client)) else { continue };
            let mut relays = self.relays();
            relays.retain(|relay| relay.strong_count() > 0);
            relays.push(Arc::downgrade(&relay));
        }
    }

    fn open_relay(&self, client: TcpStream) -> io::Result<Arc<Relay>> {
        self.faults().connections += 1;
        let server = *self.server.lock().unwrap_or_else(PoisonError::into_inner);
        Relay::open(client, TcpStream::connect(server)?, Arc::clone(&self.faults))
    }

    fn close_all(&self) {
        for relay in self.relays().drain(..).filter_map(|relay| relay.upgrade()) {
            relay.close();
        }
    }

    fn relays(&self) -> MutexGuard<'_, Vec<Weak<Relay>>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A proxy that breaks connections at a chosen request.

mod faults;
mod link;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Server;
use faults::{Fate, Faults};
use link::Link;

/// A proxy between clients and a server without TLS, which knows where each request and each reply
/// ends. Faults are set while it runs, and concern all its connections together.
///
/// `HELLO`, `CLIENT SETINFO` and whatever else a client says first are requests as well;
/// [`only`](Self::only) says which count. In a cluster a client goes on to the nodes' own ports,
/// unless they announce the proxy's: `CONFIG SET cluster-announce-port`.
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
    server: SocketAddr,
    faults: Arc<Mutex<Faults>>,
    links: Mutex<Vec<Weak<Link>>>,
    is_stopped: AtomicBool,
}

impl Proxy {
    /// A proxy on a free port before `server`, which may be restarted behind it.
    pub fn before(server: &Server) -> Self {
        let mut proxy = Self::to(SocketAddr::from((Ipv4Addr::LOCALHOST, server.port())));
        proxy.url = server.url_at(proxy.address.port());
        proxy
    }

    /// A proxy on a free port before whatever listens at `server`.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            server,
            faults: Arc::default(),
            links: Mutex::default(),
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

    /// The port it listens at.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many requests it has seen.
    pub fn requests(&self) -> u64 {
        self.faults().requests
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> u64 {
        self.faults().connections
    }

    /// Lets only these commands count for the faults that name the nth next request; all if empty.
    pub fn only(&self, commands: &[&str]) {
        self.faults().only = commands.iter().map(|command| command.to_uppercase()).collect();
    }

    /// Closes the connection before the nth next request is passed on: the server never sees it.
    /// What was asked before it is still answered.
    pub fn cut_before(&self, nth: u64) {
        self.faults().plan(nth, Fate::CutBefore);
    }

    /// Passes the nth next request on, and closes the connection in place of its reply.
    pub fn cut_after_execution(&self, nth: u64) {
        self.faults().plan(nth, Fate::CutAfterExecution);
    }

    /// Answers the nth next request with `line`, as `-LOADING …` with its minus, in place of the
    /// server's reply. `executed` says whether the server sees the request.
    pub fn replace_reply(&self, nth: u64, line: &str, executed: bool) {
        self.faults().plan(nth, Fate::Replace { line: line.to_owned(), executed });
    }

    /// Lets each reply wait so long before it is passed on. Those of one connection wait one after
    /// the other.
    pub fn delay(&self, delay: Duration) {
        self.faults().delay = delay;
    }

    /// Passes replies on one byte at a time, each in a packet of its own.
    pub fn split_bytes(&self, split_bytes: bool) {
        self.faults().split_bytes = split_bytes;
    }

    /// Accepts connections and requests, and never answers. A connection that has lost something so
    /// stays silent when it is over; new ones work.
    pub fn blackhole(&self, blackhole: bool) {
        self.faults().blackhole = blackhole;
    }

    /// Ends all faults, also those that were planned.
    pub fn heal(&self) {
        self.faults().forget();
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
        // It waits for a connection, so it gets one.
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
            // A server that is down looks to the client like one that closes at once.
            let Ok(link) = client.and_then(|client| self.link(client)) else { continue };
            let mut links = self.links();
            links.retain(|link| link.strong_count() > 0);
            links.push(Arc::downgrade(&link));
        }
    }

    fn link(&self, client: TcpStream) -> io::Result<Arc<Link>> {
        self.faults().connections += 1;
        Link::open(client, TcpStream::connect(self.server)?, Arc::clone(&self.faults))
    }

    fn close_all(&self) {
        for link in self.links().drain(..).filter_map(|link| link.upgrade()) {
            link.close();
        }
    }

    fn links(&self) -> MutexGuard<'_, Vec<Weak<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

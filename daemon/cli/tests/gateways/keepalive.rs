//! Connections between a gateway and the daemon.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate_testkit::{GatewayKind, Port};

use crate::setup::{Options, Setup};

/// A thousand requests of one client, most of them denied, use at most four connections to the
/// daemon.
pub(crate) fn gateway_reuses_its_connections(kind: GatewayKind) {
    let daemon_port = Port::reserve();
    let relay = Relay::to(daemon_port.number());
    let options =
        Options { relay: Some(relay.port), daemon_port: Some(daemon_port), ..Options::default() };
    let setup = Setup::with(kind, options);
    let mut client = setup.client(9);
    let mut denied = 0;
    for _ in 0..1_000 {
        denied += usize::from(client.send("GET /login", &[], "").status == 429);
    }
    assert_eq!(denied, 995);
    let connections = relay.connections();
    assert!(connections <= 4, "{connections} connections for one client");
}

/// A TCP relay that counts connections. It runs until the process ends.
#[derive(Debug)]
struct Relay {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Relay {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let relay = Self {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::clone(&connections),
        };
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                // If the daemon refuses the connection, dropping `near` closes it.
                if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    pass(near.try_clone().unwrap(), far.try_clone().unwrap());
                    pass(far, near);
                }
            }
        });
        relay
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        // If one side fails, the other side is closed too.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

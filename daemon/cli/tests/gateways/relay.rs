//! A TCP relay that counts connections.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs until the process ends.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
}

impl Relay {
    pub(crate) fn to(port: u16) -> Self {
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

    pub(crate) fn connections(&self) -> usize {
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

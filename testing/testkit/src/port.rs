//! Ports that no other test takes.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// A port of the loopback interface, reserved for as long as this lives: its UDP twin, which no
/// server of a test needs, is held meanwhile. So a server that is killed finds its port again.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reservation: UdpSocket,
}

/// Below the ports that Linux and others give to outgoing connections.
const FIRST: u64 = 12_000;
const PORTS: u64 = 20_000;

impl Port {
    /// Reserves a port that nobody uses.
    ///
    /// # Panics
    ///
    /// If no loopback port is free.
    #[track_caller]
    pub fn reserve() -> Self {
        let random = RandomState::new().hash_one(0);
        (0..PORTS)
            .filter_map(|step| u16::try_from(FIRST + random.wrapping_add(step) % PORTS).ok())
            .find_map(Self::try_reserve)
            .expect("no loopback port is free")
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _reservation: reservation })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_reserved_once() {
        let port = Port::reserve();
        assert!(Port::try_reserve(port.number()).is_none());
        TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
    }
}

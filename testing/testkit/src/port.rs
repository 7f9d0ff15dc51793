//! Reserved ports.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// A loopback TCP port that no other test uses. The UDP port with the same number, which no server
/// needs, serves as the lock, so that a server can restart at its port.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reservation: UdpSocket,
}

/// Below the range for outgoing connections.
const FIRST_PORT: u64 = 12_000;
const PORT_COUNT: u64 = 20_000;

impl Port {
    /// Reserves a free port.
    #[track_caller]
    pub fn reserve() -> Self {
        let random = RandomState::new().hash_one(0);
        (0..PORT_COUNT)
            .filter_map(|step| {
                u16::try_from(FIRST_PORT + random.wrapping_add(step) % PORT_COUNT).ok()
            })
            .find_map(Self::try_reserve)
            .expect("no loopback port is free")
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _reservation: reservation })
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_can_be_reserved_once() {
        let port = Port::reserve();
        assert!(Port::try_reserve(port.number()).is_none());
        TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
    }
}

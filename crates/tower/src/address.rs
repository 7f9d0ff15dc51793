//! The address of the client of a request.

use std::net::{IpAddr, SocketAddr};

use http::Extensions;
use http::request::Parts;
use tollgate_headers::{
    AddressHeader, ClientAddressError, Ipv6Prefix, Networks, Peer, client_address,
};

use crate::key::KeyExtractor;

/// The address of a client: that of the peer, or behind trusted proxies the one that they report.
///
/// The proxies' header is read from the right, and only as far as trusted proxies wrote it: the
/// address is the rightmost one that is not a trusted proxy. What the client sent further to the left
/// is ignored. For a peer that is not a trusted proxy the header is not read, and its own address is
/// used. If a trusted proxy sends no header, or something other than an address, the request is
/// invalid; see [`Rule::on_invalid`](crate::Rule::on_invalid).
///
/// An IPv4-mapped IPv6 address is the IPv4 address. Any other IPv6 address is replaced by its
/// network, because a client usually has all addresses of a network of 64 bits.
///
/// # Examples
/// ```
/// use tollgate_tower::{AddressHeader, ClientAddress, Ipv6Prefix, KeyExtractor, Networks};
///
/// let trusted = Networks::parse("10.0.0.0/8, ::1")?;
/// let client = ClientAddress::behind(trusted)
///     .header(AddressHeader::FORWARDED)
///     .ipv6_prefix(Ipv6Prefix::new(56).ok_or("a prefix has 32 to 128 bits")?);
/// let key: KeyExtractor = client.into();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientAddress {
    trusted: Networks,
    header: AddressHeader,
    ipv6_prefix: Ipv6Prefix,
}

impl ClientAddress {
    /// The address of the peer. No header is read.
    pub fn peer() -> Self {
        ClientAddress::behind(Networks::default())
    }

    /// The address that these proxies report in `X-Forwarded-For`. The word `unix` in the list stands
    /// for peers without an address: those that connect through a Unix socket.
    pub fn behind(trusted: Networks) -> Self {
        ClientAddress {
            trusted,
            header: AddressHeader::X_FORWARDED_FOR,
            ipv6_prefix: Ipv6Prefix::default(),
        }
    }

    /// Sets the header in which the proxies report the address.
    pub fn header(mut self, header: AddressHeader) -> Self {
        self.header = header;
        self
    }

    /// Sets the length of the IPv6 network that stands for a client; the default is 64 bits.
    pub fn ipv6_prefix(mut self, prefix: Ipv6Prefix) -> Self {
        self.ipv6_prefix = prefix;
        self
    }

    pub(crate) fn extract(&self, parts: &Parts) -> Result<Option<Vec<u8>>, ClientAddressError> {
        let peer = peer(&parts.extensions);
        let address = match peer.map_or(Peer::Unix, Peer::Ip) {
            peer if self.trusted.contains_peer(peer) => {
                Some(client_address(&parts.headers, self.header, peer, &self.trusted)?)
            }
            _ => peer,
        };
        Ok(address.map(|address| self.ipv6_prefix.key(address).into_bytes()))
    }
}

impl From<ClientAddress> for KeyExtractor {
    fn from(address: ClientAddress) -> Self {
        KeyExtractor::address(address)
    }
}

/// The address of the peer, from the extension of the server.
fn peer(extensions: &Extensions) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    {
        use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
        if let Some(ConnectInfo(peer)) = extensions.get::<ConnectInfo<SocketAddr>>() {
            return Some(peer.ip());
        }
        if let Some(MockConnectInfo(peer)) = extensions.get::<MockConnectInfo<SocketAddr>>() {
            return Some(peer.ip());
        }
    }
    #[cfg(feature = "tonic")]
    {
        use tonic::transport::server::TcpConnectInfo;
        if let Some(peer) = extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr)
        {
            return Some(peer.ip());
        }
    }
    extensions.get::<SocketAddr>().map(|peer| peer.ip())
}

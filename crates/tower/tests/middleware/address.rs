//! Keys by the client's address.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::extract::connect_info::MockConnectInfo;
use http::Request;
use tollgate::{Cost, Key, MemoryLimiter};
use tollgate_tower::{
    AddressHeader, ClientAddress, Ipv6Prefix, KeyExtractor, Networks, RateLimitLayer,
};
use tonic::transport::server::TcpConnectInfo;

use crate::support::{api, around, send, statuses, stopped, with_headers};

/// A request from a peer, with header lines.
fn from(peer: &str, lines: &[&str]) -> Request<()> {
    let mut request = with_headers(lines);
    request.extensions_mut().insert(SocketAddr::new(peer.parse().unwrap(), 4_711));
    request
}

fn behind_proxy() -> ClientAddress {
    ClientAddress::behind(Networks::parse("10.0.0.0/8").unwrap())
}

/// The key that a request is counted under: the only one with less than the whole quota.
async fn counted(
    key: impl Into<KeyExtractor>,
    request: Request<()>,
    candidates: &[&str],
) -> String {
    let (limiter, _) = stopped();
    let layer = RateLimitLayer::new(limiter.clone(), api("9/min"), key.into());
    let (service, _) = around(&layer);
    let reply = send(&service, request).await;
    if reply.status != 200 {
        return reply.status.as_str().to_owned();
    }
    let is_used = |limiter: &MemoryLimiter, key: &str| {
        limiter.peek(&api("9/min"), Key::new(key).unwrap(), Cost::ONE).remaining < 9
    };
    let used: Vec<_> = candidates.iter().filter(|key| is_used(&limiter, key)).copied().collect();
    used.join(" ")
}

/// A key for each IPv6 address gives a client 2^64 limits, and an IPv4 address has two spellings.
#[tokio::test]
async fn peers_are_counted_by_network() {
    for (peer, key) in [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1:2:3", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
    ] {
        let found = counted(KeyExtractor::peer_address(), from(peer, &[]), &[key]).await;
        assert_eq!(found, key, "{peer}");
    }
    let key = ClientAddress::peer().ipv6_prefix(Ipv6Prefix::new(48).unwrap());
    let found = counted(key, from("2001:db8:1:2::1", &[]), &["2001:db8:1::/48"]).await;
    assert_eq!(found, "2001:db8:1::/48");
}

#[tokio::test]
async fn peer_is_found_in_the_extension_of_each_server() {
    let peer: SocketAddr = "203.0.113.7:1".parse().unwrap();
    let with = |insert: fn(&mut http::Extensions, SocketAddr)| {
        let mut request = with_headers(&[]);
        insert(request.extensions_mut(), peer);
        request
    };
    for request in [
        with(|extensions, peer| {
            extensions.insert(peer);
        }),
        with(|extensions, peer| {
            extensions.insert(ConnectInfo(peer));
        }),
        with(|extensions, peer| {
            extensions.insert(MockConnectInfo(peer));
        }),
        with(|extensions, peer| {
            let info = TcpConnectInfo { local_addr: None, remote_addr: Some(peer) };
            extensions.insert(info);
        }),
    ] {
        let found = counted(KeyExtractor::peer_address(), request, &["203.0.113.7"]).await;
        assert_eq!(found, "203.0.113.7");
    }
    // A server that does not insert it is a mistake that must not admit everyone.
    let (service, application) =
        around(&RateLimitLayer::new(stopped().0, api("9/min"), KeyExtractor::peer_address()));
    assert_eq!(statuses(&service, [with_headers(&[])]).await, [400]);
    assert_eq!(application.calls(), 0);
}

/// `SmartIpKeyExtractor` of `tower_governor` trusts `X-Forwarded-For` of every client.
#[tokio::test]
async fn a_client_cannot_choose_its_address() {
    let all = ["1.2.3.4", "203.0.113.7", "198.51.100.1", "10.1.2.3"];
    for (peer, lines, expected) in [
        // Not a proxy: its headers are ignored.
        ("203.0.113.7", &["x-forwarded-for: 1.2.3.4"][..], "203.0.113.7"),
        ("203.0.113.7", &[], "203.0.113.7"),
        // The proxy appends the address that it sees.
        ("10.1.2.3", &["x-forwarded-for: 203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", &["x-forwarded-for: 1.2.3.4, 203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", &["x-forwarded-for: 1.2.3.4", "x-forwarded-for: 203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", &["x-forwarded-for: 1.2.3.4, 203.0.113.7, 10.9.9.9"], "203.0.113.7"),
        ("::ffff:10.1.2.3", &["x-forwarded-for: ::ffff:203.0.113.7"], "203.0.113.7"),
        // Other headers are not read.
        ("10.1.2.3", &["x-real-ip: 1.2.3.4", "x-forwarded-for: 203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", &["forwarded: for=1.2.3.4", "x-forwarded-for: 203.0.113.7"], "203.0.113.7"),
        // The proxy did not report an address.
        ("10.1.2.3", &[], "400"),
        ("10.1.2.3", &["x-forwarded-for: unknown"], "400"),
        ("10.1.2.3", &["x-forwarded-for: \u{e9}"], "400"),
    ] {
        let found = counted(behind_proxy(), from(peer, lines), &all).await;
        assert_eq!(found, expected, "{peer} {lines:?}");
    }
}

#[tokio::test]
async fn other_headers_can_have_the_address() {
    let all = ["1.2.3.4", "203.0.113.7"];
    for (header, lines, expected) in [
        (AddressHeader::FORWARDED, &["forwarded: for=1.2.3.4, for=203.0.113.7"][..], "203.0.113.7"),
        (AddressHeader::FORWARDED, &["forwarded: for=\"1.2.3.4, for=203.0.113.7"], "203.0.113.7"),
        (AddressHeader::FORWARDED, &["x-forwarded-for: 1.2.3.4"], "400"),
        (AddressHeader::X_REAL_IP, &["x-real-ip: 203.0.113.7"], "203.0.113.7"),
        (AddressHeader::X_REAL_IP, &["x-real-ip: 1.2.3.4", "x-real-ip: 203.0.113.7"], "400"),
    ] {
        let found = counted(behind_proxy().header(header), from("10.1.2.3", lines), &all).await;
        assert_eq!(found, expected, "{lines:?}");
    }
}

/// A peer without an address is trusted only if the list contains `unix`.
#[tokio::test]
async fn peers_on_a_unix_socket_are_trusted_by_name() {
    let request = || with_headers(&["x-forwarded-for: 203.0.113.7"]);
    let socket = ClientAddress::behind(Networks::parse("unix").unwrap());
    assert_eq!(counted(socket, request(), &["203.0.113.7"]).await, "203.0.113.7");
    assert_eq!(counted(behind_proxy(), request(), &["203.0.113.7"]).await, "400");
}

/// `governor` keeps every key until the application removes it, so that unique addresses fill the
/// memory.
#[tokio::test]
async fn memory_is_bounded_under_unique_addresses() {
    let limiter = MemoryLimiter::builder().max_keys(1_000).build();
    let layer = RateLimitLayer::new(limiter.clone(), api("9/min"), KeyExtractor::peer_address());
    let (service, application) = around(&layer);
    for network in 0..20_000_u128 {
        let address = std::net::Ipv6Addr::from_bits(0x2001_0db8 << 96 | network << 64);
        assert_eq!(send(&service, from(&address.to_string(), &[])).await.status, 200);
    }
    assert_eq!(application.calls(), 20_000);
    assert!(limiter.stats().keys <= 1_000, "{:?}", limiter.stats());
}

//! Connections that end or stop responding.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::Status;

use super::configurations::one;
use super::control_plane::ControlPlane;
use super::{open, start_configured, start_with_options, wait_for_readiness};
use crate::envoy::assert_response;

#[tokio::test]
async fn ended_streams_are_reopened_and_limits_stay_active() {
    let (mut plane, daemon, mut session) = start_configured().await;
    for turn in 0..4 {
        match turn % 2 {
            0 => drop(session),
            _ => session.fail(Status::resource_exhausted("come back later")).await,
        }
        session = plane.session().await;
        let request = session.request().await;
        // A new stream starts without a version.
        assert_eq!((&*request.version_info, &*request.response_nonce), ("", ""));
        session.push_valid("1", one("foo", "k1=v1 3/DAY")).await;
    }
    assert_response(&daemon, "foo | k1=v1", "OK | OK 3/DAY 2 33200s").await;
}

#[tokio::test]
async fn a_restarted_server_may_reuse_a_version_for_other_limits() {
    let (plane, daemon, session) = start_configured().await;
    let address = plane.address;
    drop((session, plane));
    // It is still ready, because the limits stay active.
    wait_for_readiness(&daemon, 200, "[-] discovery: 127.0.0.1").await;
    assert_response(&daemon, "foo | k1=v1", "OK | OK 3/DAY 2 33200s").await;
    let mut plane = ControlPlane::start_at(address, None).await;
    let mut session = open(&mut plane).await;
    session.push_valid("1", one("foo", "k1=v1 4/DAY")).await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
    assert_response(&daemon, "foo | k1=v1", "OK | OK 4/DAY 2 33200s").await;
}

#[tokio::test]
async fn oversized_responses_are_reported_and_the_stream_is_reopened() {
    let mut plane = ControlPlane::start().await;
    let daemon = start_with_options(&plane, |options| options.max_message = 1_000).await;
    let session = open(&mut plane).await;
    session.push("1", one("foo", &format!("k1={} 3/DAY", "v".repeat(1_000)))).await;
    let mut session = plane.session().await;
    wait_for_readiness(&daemon, 503, "is reconnected, without a configuration since: OutOfRange: ")
        .await;
    session.request().await;
    session.push_valid("2", one("foo", "k1=v1 3/DAY")).await;
}

#[tokio::test]
async fn half_open_connections_are_closed() {
    let mut plane = ControlPlane::start().await;
    let proxy = Proxy::start(plane.address).await;
    let daemon = start_with_options(&plane, |options| {
        options.server = proxy.address.to_string();
        options.ping_every = Duration::from_millis(50);
        options.ping_timeout = Duration::from_millis(200);
    })
    .await;
    let mut session = open(&mut plane).await;
    session.push_valid("1", one("foo", "k1=v1 3/DAY")).await;
    proxy.is_blocked.send_replace(true);
    wait_for_readiness(&daemon, 200, "[-] discovery: 127.0.0.1").await;
    proxy.is_blocked.send_replace(false);
    let mut session = open(&mut plane).await;
    session.push_valid("2", one("foo", "k1=v1 4/DAY")).await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
}

/// A proxy that can block: it then forwards nothing and closes nothing. New connections are accepted
/// and forwarded once it is unblocked.
struct Proxy {
    address: SocketAddr,
    is_blocked: watch::Sender<bool>,
}

impl Proxy {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_blocked, receiver) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                let (peer, _) = listener.accept().await.unwrap();
                tokio::spawn(forward(peer, server, receiver.clone()));
            }
        });
        Proxy { address, is_blocked }
    }
}

async fn forward(mut peer: TcpStream, server: SocketAddr, mut is_blocked: watch::Receiver<bool>) {
    is_blocked.wait_for(|is_blocked| !is_blocked).await.map(drop).unwrap();
    let mut server = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut peer, &mut server) => {}
        () = async { is_blocked.wait_for(|is_blocked| *is_blocked).await.map(drop).unwrap() } => {
            // Keeps the connections open, so that neither end notices.
            std::future::pending::<()>().await;
        }
    }
}

//! Connections that end, and those that seem not to.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::Status;

use super::configs::one;
use super::plane::Plane;
use super::{start, start_changed, until_ready};
use crate::rls::check_all;

#[tokio::test]
async fn a_stream_that_ends_is_begun_anew_and_what_held_stays() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    for turn in 0..4 {
        match turn % 2 {
            0 => drop(session),
            _ => session.fail(Status::resource_exhausted("come back later")).await,
        }
        session = plane.session().await;
        let asked = session.request().await;
        // It asks for all, whatever it had.
        assert_eq!((&*asked.version_info, &*asked.response_nonce), ("", ""));
        session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    }
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < OK | OK 3/DAY 2 33200s
    ",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_went_may_come_back_with_other_limits_of_the_same_version() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let address = plane.address;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    drop((session, plane));
    // It is still ready: what it was told still holds.
    until_ready(&daemon, 200, "[-] discovery: 127.0.0.1").await;
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < OK | OK 3/DAY 2 33200s
    ",
    )
    .await;
    let mut plane = Plane::start_at(address, None).await;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 4/DAY")).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < OK | OK 4/DAY 2 33200s
    ",
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_told_and_the_stream_is_begun_anew() {
    let mut plane = Plane::start().await;
    let daemon = start_changed(&plane, |x| x.max_message = 1_000).await;
    let mut session = plane.session().await;
    session.request().await;
    session.push("1", one("foo", &format!("k1={} 3/DAY", "v".repeat(1_000)))).await;
    let mut session = plane.session().await;
    until_ready(&daemon, 503, "is reconnected, without a configuration since: OutOfRange: ").await;
    session.request().await;
    session.push_good("2", one("foo", "k1=v1 3/DAY")).await;
}

#[tokio::test]
async fn a_connection_that_is_half_dead_is_left() {
    let mut plane = Plane::start().await;
    let wire = Wire::before(plane.address).await;
    let daemon = start_changed(&plane, |x| {
        x.server = wire.address.to_string();
        x.ping_every = Duration::from_millis(50);
        x.ping_timeout = Duration::from_millis(200);
    })
    .await;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    wire.is_cut.send_replace(true);
    until_ready(&daemon, 200, "[-] discovery: 127.0.0.1").await;
    wire.is_cut.send_replace(false);
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("2", one("foo", "k1=v1 4/DAY")).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
}

/// A wire that can be cut: then nothing comes through it any more, and nobody is told. New
/// connections are taken and come to nothing until it is mended.
struct Wire {
    address: SocketAddr,
    is_cut: watch::Sender<bool>,
}

impl Wire {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_cut, seen) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                let (peer, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(peer, server, seen.clone()));
            }
        });
        Wire { address, is_cut }
    }
}

async fn carry(mut peer: TcpStream, server: SocketAddr, mut is_cut: watch::Receiver<bool>) {
    is_cut.wait_for(|is_cut| !is_cut).await.map(drop).unwrap();
    let mut server = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut peer, &mut server) => {}
        () = async { is_cut.wait_for(|it| *it).await.map(drop).unwrap() } => {
            // Held open, so that neither end hears of it.
            std::future::pending::<()>().await;
        }
    }
}

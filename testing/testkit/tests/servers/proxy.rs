//! The fault-injecting proxy.

use std::time::{Duration, Instant};
use std::{io, thread};

use tollgate_testkit::{Connection, Proxy, Reply, Server};

#[expect(clippy::unwrap_used, reason = "it is part of the tests")]
fn connect(proxy: &Proxy) -> Connection {
    Connection::to(&proxy.address()).unwrap()
}

fn start() -> (Server, Proxy, Connection) {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let client = connect(&proxy);
    (server, proxy, client)
}

fn incr(client: &mut Connection) -> io::Result<Reply> {
    client.command(&["INCR", "k"])
}

fn counted(server: &Server) -> i64 {
    server.command(&["INCRBY", "k", "0"]).integer()
}

#[test]
fn requests_and_replies_are_forwarded_and_counted() {
    let (server, proxy, mut client) = start();
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
    assert_eq!(incr(&mut client).unwrap(), Reply::Integer(1));
    let binary = [b"SET".as_slice(), b"b", &[b'\r', b'\n', 0, 255, b'*']];
    assert_eq!(client.command(&binary).unwrap(), Reply::ok());
    assert_eq!(client.command(&["GET", "b"]).unwrap(), Reply::Bulk(binary[2].to_vec()));
    assert!(!client.command(&["HELLO", "3"]).unwrap().is_error());
    assert!(client.command(&["NO"]).unwrap().is_error());
    assert_eq!((proxy.requests(), proxy.connections()), (5, 1));

    // Push messages are forwarded too.
    client.command(&["SUBSCRIBE", "channel"]).unwrap();
    server.command(&["PUBLISH", "channel", "news"]);
    assert_eq!(client.receive().unwrap().array()[2].text(), "news");
    // The server restarts behind the proxy.
    server.restart();
    assert!(client.command(&["PING"]).is_err());
    let mut client = connect(&proxy);
    assert_eq!(incr(&mut client).unwrap(), Reply::Integer(1));
    drop(proxy);
    assert!(incr(&mut client).is_err());
}

#[test]
fn connection_is_cut_before_or_after_execution() {
    let (server, proxy, mut client) = start();
    proxy.cut_before(2);
    assert!(incr(&mut client).is_ok());
    assert!(incr(&mut client).is_err());
    assert_eq!(counted(&server), 1);
    let mut client = connect(&proxy);
    proxy.cut_after_execution(1);
    assert!(incr(&mut client).is_err());
    assert_eq!(counted(&server), 2);

    // In a pipeline, earlier requests get their replies.
    let mut client = connect(&proxy);
    proxy.only(&["INCR"]);
    proxy.cut_before(2);
    for _ in 0..3 {
        client.send(&["INCR", "k"]).unwrap();
        client.send(&["PING"]).unwrap();
    }
    assert_eq!(client.receive().unwrap(), Reply::Integer(3));
    assert_eq!(client.receive().unwrap().text(), "PONG");
    assert!(client.receive().is_err());
    assert_eq!((counted(&server), proxy.connections()), (3, 3));
}

#[test]
fn replaced_reply_keeps_its_position() {
    let (server, proxy, mut client) = start();
    proxy.replace_reply(1, "-LOADING not yet", false);
    assert_eq!(incr(&mut client).unwrap(), Reply::Error("LOADING not yet".to_owned()));
    proxy.replace_reply(1, "-READONLY no more", true);
    assert_eq!(incr(&mut client).unwrap(), Reply::Error("READONLY no more".to_owned()));
    assert_eq!(counted(&server), 1);

    proxy.replace_reply(2, "-BUSY a", false);
    proxy.replace_reply(3, "-BUSY b", true);
    proxy.replace_reply(4, "-BUSY c", false);
    for _ in 0..5 {
        client.send(&["INCR", "k"]).unwrap();
    }
    let replies: Vec<_> = (0..5).map(|_| client.receive().unwrap().text()).collect();
    assert_eq!(replies, ["2", "BUSY a", "BUSY b", "BUSY c", "4"]);
    assert_eq!(counted(&server), 4);
}

#[test]
fn replies_are_delayed_and_split() {
    let (_server, proxy, mut client) = start();
    proxy.split_bytes(true);
    let text = "x".repeat(5000);
    assert_eq!(client.command(&["ECHO", &text]).unwrap().text(), text);
    proxy.split_bytes(false);
    proxy.delay(Duration::from_millis(60));
    let started = Instant::now();
    assert_eq!(incr(&mut client).unwrap(), Reply::Integer(1));
    assert!(started.elapsed() >= Duration::from_millis(60));
    proxy.clear_faults();
    assert_eq!(incr(&mut client).unwrap(), Reply::Integer(2));
}

#[test]
fn blackhole_drops_replies_and_reset_closes_connections() {
    let (server, proxy, mut client) = start();
    proxy.blackhole(true);
    let mut other = connect(&proxy);
    other.send(&["INCR", "k"]).unwrap();
    thread::scope(|scope| {
        let silent = scope.spawn(|| incr(&mut client));
        while proxy.requests() < 2 {
            thread::sleep(Duration::from_millis(2));
        }
        proxy.blackhole(false);
        thread::sleep(Duration::from_millis(50));
        assert!(!silent.is_finished());
        proxy.reset_connections();
        assert!(silent.join().unwrap().is_err());
    });
    assert!(other.receive().is_err());
    assert_eq!(counted(&server), 0);
    let mut client = connect(&proxy);
    assert_eq!(incr(&mut client).unwrap(), Reply::Integer(1));
}

//! Slow and hostile clients: each is limited, and other clients are served meanwhile.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config as ProptestConfig, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tollgate::{ManualClock, MemoryLimiter, Timestamp};
use tollgate_daemon::{Config, RespReplay};

use super::{RespClient, encode, encode_words};
use crate::metrics::{assert_lines, page};
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::eventually;

async fn assert_others_are_served(daemon: &Daemon) {
    let mut other = RespClient::connect(daemon).await;
    let reply = other.call("CL.THROTTLE other 9 1 1 0").await;
    assert_eq!(reply, "*5 :0 :10 :10 :-1 :0");
}

#[tokio::test]
async fn incomplete_frames_are_closed_after_the_header_timeout() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s, idle: 1h").await;
    let mut slow = Vec::new();
    for beginning in ["", "*", "*3\r\n$4\r\nECHO\r\n", "PIN", "*1\r\n$60000\r\nabc"] {
        for is_reused in [false, true] {
            let mut client = RespClient::connect(&daemon).await;
            if is_reused && !beginning.is_empty() {
                assert_eq!(client.call("PING").await, "+PONG");
            }
            client.send(beginning.as_bytes()).await;
            slow.push(client);
        }
    }
    assert_others_are_served(&daemon).await;
    for client in &mut slow {
        assert_eq!(client.read_until_closed().await, "");
    }
    let closed = r#"tollgate_connections_cut_total{listener="resp",reason="overdue"} 10"#;
    assert_lines(&page(&daemon).await, closed);
}

#[tokio::test]
async fn idle_clients_outlive_the_header_timeout_until_the_idle_timeout() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s, idle: 1h").await;
    let mut kept = RespClient::connect(&daemon).await;
    assert_eq!(kept.call("MULTI").await, "+OK");
    // Silent connections are closed meanwhile.
    assert_eq!(RespClient::connect(&daemon).await.read_until_closed().await, "");
    assert_eq!(RespClient::connect(&daemon).await.read_until_closed().await, "");
    assert_eq!(kept.call("PING").await, "+QUEUED");
    let daemon = Daemon::start_with_limits("header_timeout: 1s, idle: 100ms").await;
    let mut idle = RespClient::connect(&daemon).await;
    assert_eq!(idle.call("PING").await, "+PONG");
    assert_eq!(idle.read_until_closed().await, "");
}

#[tokio::test]
async fn silent_connections_are_evicted_at_the_connection_limit() {
    let daemon = Daemon::start_with_limits("connections: 2, header_timeout: 1h, idle: 1h").await;
    let mut silent = [RespClient::connect(&daemon).await, RespClient::connect(&daemon).await];
    assert_others_are_served(&daemon).await;
    let mut open = 0;
    for client in &mut silent {
        let mut byte = [0];
        let closed = client.0.read(&mut byte);
        open += usize::from(timeout(Duration::ZERO, closed).await.is_err());
    }
    assert_eq!(open, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_replies_are_not_read() {
    const COMMANDS: usize = 4_096;
    let daemon = Daemon::start().await;
    let client = RespClient::connect(&daemon).await;
    let (mut reader, mut writer) = client.0.into_split();
    let payload = vec![b'x'; 8_000];
    let sent = encode(&[b"ECHO", &payload]);
    let writing = tokio::spawn(async move {
        for _ in 0..COMMANDS {
            writer.write_all(&sent).await.unwrap();
        }
        writer
    });
    for _ in 0..100 {
        assert_others_are_served(&daemon).await;
    }
    assert!(!writing.is_finished(), "32 MB do not fit into the socket buffers");
    let expected = encode(&[&payload]);
    let mut read = vec![0; expected.len() - 4];
    for _ in 0..COMMANDS {
        reader.read_exact(&mut read).await.unwrap();
        assert_eq!(read, expected[4..]);
    }
    drop(writing.await.unwrap());
}

/// The bytes that the connections of a daemon pin, without the first of each buffer.
async fn buffered(daemon: &Daemon) -> usize {
    let page = page(daemon).await;
    let line = page.lines().find_map(|line| line.strip_prefix("tollgate_connection_buffer_bytes "));
    line.unwrap().parse().unwrap()
}

/// Sends a transaction of 110 KB with replies of 62 MB, and does not read them.
async fn send_without_reading(daemon: &Daemon) -> RespClient {
    let docs = encode_words("COMMAND DOCS").repeat(3_500);
    let mut client = RespClient::connect(daemon).await;
    client.send(&[encode_words("MULTI"), docs, encode_words("EXEC")].concat()).await;
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_replies_are_bounded_and_closed_after_the_write_timeout() {
    let daemon = Daemon::start_with_limits("write_timeout: 2s, header_timeout: 1h, idle: 1h").await;
    let mut client = send_without_reading(&daemon).await;
    let closed = r#"tollgate_connections_cut_total{listener="resp",reason="overdue"} 1"#;
    let mut most = 0;
    while !page(&daemon).await.contains(closed) {
        most = buffered(&daemon).await.max(most);
        assert_others_are_served(&daemon).await;
    }
    // The queued commands, and replies of up to 256 KiB in a buffer that grows by doubling.
    assert!((1..=1_500_000).contains(&most), "{most}");
    // A connection is counted before its buffers are freed.
    eventually("free buffers", async || buffered(&daemon).await == 0).await;
    assert!(client.read_until_closed().await.starts_with("+OK"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_share_the_buffers_of_the_daemon() {
    let daemon = Daemon::start_with_limits("buffers: 2MiB, write_timeout: 1h, idle: 1h").await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        clients.push(send_without_reading(&daemon).await);
        assert_others_are_served(&daemon).await;
        let buffered = buffered(&daemon).await;
        assert!(buffered <= 2 * 1024 * 1024, "{buffered}");
    }
    // Some of them were closed, and the others go on.
    let closed = r#"tollgate_connections_cut_total{listener="resp",reason="failed"}"#;
    eventually("closed connections", async || {
        let page = page(&daemon).await;
        page.lines().any(|line| line.starts_with(closed) && !line.ends_with(" 0"))
    })
    .await;
    drop(clients);
    eventually("free buffers", async || buffered(&daemon).await == 0).await;
}

#[tokio::test]
async fn commands_in_flight_are_answered_before_the_daemon_stops() {
    let mut daemon = Daemon::start().await;
    let mut idle = RespClient::connect(&daemon).await;
    let mut half = RespClient::connect(&daemon).await;
    assert_eq!(idle.call("PING").await, "+PONG");
    assert_eq!(half.call("PING").await, "+PONG");
    let sent = encode_words("CL.THROTTLE k 1 1 60");
    let (first, second) = sent.split_at(17);
    half.send(first).await;
    assert_others_are_served(&daemon).await;
    daemon.stop();
    assert_eq!(idle.read_until_closed().await, "");
    half.send(second).await;
    half.send(&encode_words("CL.THROTTLE k 1 1 60")).await;
    let reply = half.read_until_closed().await;
    assert!(reply.starts_with("*5\\r\\n:0\\r\\n:2\\r\\n:1\\r\\n:-1\\r\\n:60\\r\\n"), "{reply}");
    daemon.join().await;
}

/// Bytes that often contain commands.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        vec(any::<u8>(), 0..24),
        words(&["CL.THROTTLE k 5 1 1", "CL.THROTTLE j 5 1 1", "CL.THROTTLE k 2 1 60 2", "DEL k"]),
        words(&["TOLLGATE.CHECK bucket k", "TOLLGATE.CHECK log k", "TOLLGATE.CHECK bucket j"]),
        words(&["CL.THROTTLE k 5 1", "CL.THROTTLE k 5 1 x", "TOLLGATE.CHECK none k"]),
        words(&["TOLLGATE.CHECK bucket k COST 2 AND log k", "TOLLGATE.CHECK bucket k COST 2"]),
        words(&["TOLLGATE.INSPECT bucket k", "TOLLGATE.REFUND bucket k", "TOLLGATE.PEEK log k"]),
        Just(encode_words("MULTI")),
        Just(encode_words("EXEC")),
        words(&["HELLO 3", "HELLO 2", "RESET", "DISCARD", "QUIT"]),
        Just(encode_words("PING")),
        Just(b"PING 'a\\x20b'\r\n".to_vec()),
        Just(b"*3\r\n$".to_vec()),
        Just(b"*99999999999\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
    ];
    // More than are decided together.
    vec(part, 0..80).prop_map(|parts| parts.concat())
}

/// One of these commands.
fn words(commands: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    select(commands).prop_map(encode_words)
}

fn replay() -> RespReplay {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    let limiter = MemoryLimiter::builder().clock(clock).build();
    RespReplay::new(&Config::from_yaml(POLICIES).unwrap(), limiter).unwrap()
}

#[test]
fn arbitrary_bytes_get_the_same_replies_however_they_are_split() {
    let mut runner = TestRunner::new(ProptestConfig::default());
    let cases = (bytes(), 1_usize..9);
    let result = runner.run(&cases, |(bytes, part)| {
        let (mut whole, mut split) = (replay(), replay());
        let reply = whole.send(&bytes);
        let mut reply_in_parts = Vec::new();
        for bytes in bytes.chunks(part) {
            if !split.has_ended() {
                reply_in_parts.extend(split.send(bytes));
            }
        }
        assert_eq!(reply.escape_ascii().to_string(), reply_in_parts.escape_ascii().to_string());
        assert_eq!(whole.has_ended(), split.has_ended());
        Ok(())
    });
    result.unwrap();
}

#[tokio::test]
async fn arbitrary_bytes_do_not_delay_other_clients() {
    let daemon = Daemon::start().await;
    let mut runner = TestRunner::deterministic();
    let mut hostile = Vec::new();
    for _ in 0..64 {
        let tree = bytes().new_tree(&mut runner).unwrap();
        let mut client = RespClient::connect(&daemon).await;
        client.send(&proptest::strategy::ValueTree::current(&tree)).await;
        assert_others_are_served(&daemon).await;
        hostile.push(client);
    }
    for mut client in hostile {
        // Closing the connection ends the replies.
        client.0.shutdown().await.unwrap();
        client.read_until_closed().await;
    }
}

#[test]
fn frames_arriving_byte_by_byte_are_parsed_once() {
    const LARGE: usize = 1024 * 1024;
    let yaml = format!("limits: {{ body: 2MiB }}\n{POLICIES}");
    let config = Config::from_yaml(&yaml).unwrap();
    let mut replay = RespReplay::new(&config, MemoryLimiter::new()).unwrap();
    let long = vec![b'x'; LARGE];
    let many: Vec<&[u8]> = std::iter::once(&b"DEL"[..]).chain([&b"k"[..]; 1_023]).collect();
    let line = [b"ECHO ".to_vec(), vec![b'x'; 60_000], b"\r\n".to_vec()].concat();
    // If each byte restarted the parser, the first frame alone would take hours.
    for (sent, expected) in [(encode(&[b"ECHO", &long]), LARGE), (encode(&many), 4), (line, 60_000)]
    {
        let length: usize = sent.iter().map(|byte| replay.send(&[*byte]).len()).sum();
        assert!(length >= expected, "{length}");
    }
}

//! Slow and hostile clients: each is bounded, and the others do not notice.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config as Cases, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tollgate::{ManualClock, MemoryLimiter, Timestamp};
use tollgate_server::{Config, RespReplay};

use super::{Talk, command, words};
use crate::daemon::{Daemon, POLICIES};
use crate::metrics::scrape;

async fn impatient(limits: &str) -> Daemon {
    Daemon::start_with(&format!("limits: {{ {limits} }}\n{POLICIES}")).await
}

async fn assert_others_are_served(daemon: &Daemon) {
    let mut other = Talk::with(daemon).await;
    let said = other.ask("CL.THROTTLE other 9 1 1 0").await;
    assert_eq!(said, "*5 :0 :10 :10 :-1 :0");
}

#[tokio::test]
async fn a_frame_that_does_not_come_is_waited_for_no_longer_than_allowed() {
    let daemon = impatient("header_timeout: 1s, idle: 1h").await;
    let mut slow = Vec::new();
    for beginning in ["", "*", "*3\r\n$4\r\nECHO\r\n", "PIN", "*1\r\n$60000\r\nabc"] {
        for asks_first in [false, true] {
            let mut talk = Talk::with(&daemon).await;
            if asks_first && !beginning.is_empty() {
                assert_eq!(talk.ask("PING").await, "+PONG");
            }
            talk.send(beginning.as_bytes()).await;
            slow.push(talk);
        }
    }
    assert_others_are_served(&daemon).await;
    for talk in &mut slow {
        assert_eq!(talk.closed().await, "");
    }
    let page = scrape(daemon.scraped, "").await.body;
    let cut = "tollgate_connections_cut_total{listener=\"resp\",reason=\"overdue\"} 10";
    assert!(page.contains(cut), "{page}");
}

#[tokio::test]
async fn an_idle_client_is_kept_longer_than_a_frame_may_take_and_closed_in_the_end() {
    let daemon = impatient("header_timeout: 1s, idle: 1h").await;
    let mut kept = Talk::with(&daemon).await;
    assert_eq!(kept.ask("MULTI").await, "+OK");
    // A peer that says nothing is closed meanwhile.
    assert_eq!(Talk::with(&daemon).await.closed().await, "");
    assert_eq!(Talk::with(&daemon).await.closed().await, "");
    assert_eq!(kept.ask("PING").await, "+QUEUED");
    let daemon = impatient("header_timeout: 1s, idle: 100ms").await;
    let mut idle = Talk::with(&daemon).await;
    assert_eq!(idle.ask("PING").await, "+PONG");
    assert_eq!(idle.closed().await, "");
}

#[tokio::test]
async fn where_all_places_are_taken_the_silent_make_room() {
    let daemon = impatient("connections: 2, header_timeout: 1h, idle: 1h").await;
    let mut silent = [Talk::with(&daemon).await, Talk::with(&daemon).await];
    assert_others_are_served(&daemon).await;
    let mut open = 0;
    for talk in &mut silent {
        let mut byte = [0];
        let closed = talk.0.read(&mut byte);
        open += usize::from(tokio::time::timeout(std::time::Duration::ZERO, closed).await.is_err());
    }
    assert_eq!(open, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_not_read_either() {
    const COMMANDS: usize = 4_096;
    let daemon = Daemon::start().await;
    let talk = Talk::with(&daemon).await;
    let (mut reader, mut writer) = talk.0.into_split();
    let payload = vec![b'x'; 8_000];
    let sent = command(&[b"ECHO", &payload]);
    let writing = tokio::spawn(async move {
        for _ in 0..COMMANDS {
            writer.write_all(&sent).await.unwrap();
        }
        writer
    });
    for _ in 0..100 {
        assert_others_are_served(&daemon).await;
    }
    assert!(!writing.is_finished(), "32 MB do not fit between two that do not read");
    let expected = command(&[&payload]);
    let mut read = vec![0; expected.len() - 4];
    for _ in 0..COMMANDS {
        reader.read_exact(&mut read).await.unwrap();
        assert_eq!(read, expected[4..]);
    }
    drop(writing.await.unwrap());
}

#[tokio::test]
async fn stopping_answers_what_was_read_and_then_ends() {
    let mut daemon = Daemon::start().await;
    let mut idle = Talk::with(&daemon).await;
    let mut half = Talk::with(&daemon).await;
    assert_eq!(idle.ask("PING").await, "+PONG");
    assert_eq!(half.ask("PING").await, "+PONG");
    let sent = words("CL.THROTTLE k 1 1 60");
    let (first, second) = sent.split_at(17);
    half.send(first).await;
    assert_others_are_served(&daemon).await;
    daemon.stop();
    assert_eq!(idle.closed().await, "");
    half.send(second).await;
    half.send(&words("CL.THROTTLE k 1 1 60")).await;
    let said = half.closed().await;
    assert!(said.starts_with("*5\\r\\n:0\\r\\n:2\\r\\n:1\\r\\n:-1\\r\\n:60\\r\\n"), "{said}");
    daemon.ended().await;
}

/// Bytes that are more like commands than any bytes are.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        vec(any::<u8>(), 0..24),
        Just(words("CL.THROTTLE k 5 1 1")),
        Just(words("TOLLGATE.CHECK bucket k COST 2 AND log k")),
        Just(words("MULTI")),
        Just(words("EXEC")),
        Just(words("HELLO 3")),
        Just(words("PING")),
        Just(b"PING 'a\\x20b'\r\n".to_vec()),
        Just(b"*3\r\n$".to_vec()),
        Just(b"*99999999999\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
    ];
    vec(part, 0..24).prop_map(|x| x.concat())
}

fn replay() -> RespReplay {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    let limiter = MemoryLimiter::builder().clock(clock).build();
    RespReplay::new(&Config::from_yaml(POLICIES).unwrap(), limiter).unwrap()
}

#[test]
fn any_bytes_are_answered_alike_however_they_are_split() {
    let mut runner = TestRunner::new(Cases::default());
    let cases = (bytes(), 1_usize..9);
    let run = runner.run(&cases, |(bytes, part)| {
        let (mut whole, mut split) = (replay(), replay());
        let said = whole.send(&bytes);
        let mut said_in_parts = Vec::new();
        for bytes in bytes.chunks(part) {
            if !split.has_ended() {
                said_in_parts.extend(split.send(bytes));
            }
        }
        assert_eq!(said.escape_ascii().to_string(), said_in_parts.escape_ascii().to_string());
        assert_eq!(whole.has_ended(), split.has_ended());
        Ok(())
    });
    run.unwrap();
}

#[tokio::test]
async fn whoever_sends_any_bytes_keeps_nobody_waiting() {
    let daemon = Daemon::start().await;
    let mut runner = TestRunner::deterministic();
    let mut hostile = Vec::new();
    for _ in 0..64 {
        let tree = bytes().new_tree(&mut runner).unwrap();
        let mut talk = Talk::with(&daemon).await;
        talk.send(&proptest::strategy::ValueTree::current(&tree)).await;
        assert_others_are_served(&daemon).await;
        hostile.push(talk);
    }
    for mut talk in hostile {
        // What was answered ends with the connection, which we end.
        talk.0.shutdown().await.unwrap();
        talk.closed().await;
    }
}

#[test]
fn a_frame_that_comes_byte_by_byte_is_read_once() {
    const LARGE: usize = 1024 * 1024;
    let yaml = format!("limits: {{ body: 2MiB }}\n{POLICIES}");
    let config = Config::from_yaml(&yaml).unwrap();
    let mut replay = RespReplay::new(&config, MemoryLimiter::new()).unwrap();
    let long = vec![b'x'; LARGE];
    let many: Vec<&[u8]> = std::iter::once(&b"DEL"[..]).chain([&b"k"[..]; 1_023]).collect();
    let line = [b"ECHO ".to_vec(), vec![b'x'; 60_000], b"\r\n".to_vec()].concat();
    // Read anew from its beginning for each byte, the first alone would take hours.
    for (sent, answered) in
        [(command(&[b"ECHO", &long]), LARGE), (command(&many), 4), (line, 60_000)]
    {
        let said: usize = sent.iter().map(|byte| replay.send(&[*byte]).len()).sum();
        assert!(said >= answered, "{said}");
    }
}

//! `CL.THROTTLE`, compatible with redis-cell.

use tollgate::Micros;

use super::{RespClient, check_rows, encode};
use crate::support::daemon::Daemon;
use crate::support::split_table;

/// Rows `time: arguments => reply`, with times since the first command of a section; each section
/// has a daemon of its own.
const ROWS: &str = "
= buckets drain and refill as in redis cell
0 ms: k 4 1 1 6 => 1 5 5 -1 0
0 ms: k 4 1 1 => 0 5 4 -1 1
0 ms: k 4 1 1 => 0 5 3 -1 2
0 ms: k 4 1 1 => 0 5 2 -1 3
0 ms: k 4 1 1 => 0 5 1 -1 4
0 ms: k 4 1 1 => 0 5 0 -1 5
0 ms: k 4 1 1 => 1 5 0 1 5
3,000 ms: k 4 1 1 => 0 5 2 -1 3
# 3.9 s are rounded up to 4.
3,100 ms: k 4 1 1 => 0 5 1 -1 4
4,000 ms: k 4 1 1 => 0 5 1 -1 4
8,000 ms: k 4 1 1 => 0 5 4 -1 1
9,500 ms: k 4 1 1 => 0 5 4 -1 1
9,500 ms: k 4 1 1 0 => 0 5 4 -1 1
9,500 ms: k 4 1 1 2 => 0 5 2 -1 3
9,500 ms: k 4 1 1 5 => 1 5 2 3 3

= fractions of a second are rounded up
0 ms: a 15 30 60 => 0 16 15 -1 2
0 ms: b 0 1 2 => 0 1 0 -1 2
0 ms: b 0 1 2 => 1 1 0 2 2
1 ms: b 0 1 2 => 1 1 0 2 2
1,000 ms: b 0 1 2 => 1 1 0 1 1
1,001 ms: b 0 1 2 => 1 1 0 1 1
2,000 ms: b 0 1 2 => 0 1 0 -1 2
# Less than a millisecond is rounded up to a second, not down to none.
2,000 ms: c 0 6000 1 => 0 1 0 -1 1
2,000 ms: c 0 6000 1 => 1 1 0 1 1
2,001 ms: c 0 6000 1 => 0 1 0 -1 1
# A quantity of 0 changes nothing.
2,001 ms: b 0 1 2 0 => 0 1 0 -1 2

= a changed burst or count keeps the usage
0 ms: k 9 10 60 6 => 0 10 4 -1 36
0 ms: k 4 10 60 => 1 5 0 6 30
0 ms: k 19 10 60 => 0 20 13 -1 42
0 ms: k 9 20 60 0 => 0 10 3 -1 21

= a changed period keeps the usage
0 ms: k 9 10 60 6 => 0 10 4 -1 36
0 ms: k 9 10 30 0 => 0 10 4 -1 18
0 ms: k 9 10 30 => 0 10 3 -1 21
# Each rate drains independently, and both are charged.
3,000 ms: k 9 10 60 0 => 0 10 3 -1 39
3,000 ms: k 9 10 30 0 => 0 10 4 -1 18
# An equal rate over another period is the same rate.
3,000 ms: k 9 20 120 0 => 0 10 3 -1 39
3,000 ms: k 9 1 3 5 => 1 10 4 3 18
3,000 ms: week 9 10 604800 6 => 0 10 4 -1 362880
3,000 ms: week 9 10 2592000 0 => 0 10 4 -1 1555200
3,000 ms: week 9 10 1 0 => 0 10 4 -1 1

= periods that do not divide 210 days start empty
0 ms: k 9 10 7776000 6 => 0 10 4 -1 4665600
0 ms: k 4 10 7776000 0 => 0 5 0 -1 3888000
0 ms: k 9 10 60 0 => 0 10 10 -1 0
0 ms: k 9 10 60 => 0 10 9 -1 6
0 ms: k 9 10 7776000 0 => 0 10 4 -1 4665600
0 ms: odd 9 10 1024 => 0 10 9 -1 103
0 ms: odd 9 10 1024 10 => 1 10 9 103 103
# More than can be counted in 210 days.
0 ms: fast 9 2000000000000 1 => 0 10 9 -1 1
0 ms: fast 9 2000000000000 1 11 => 1 10 9 -1 1
";

#[tokio::test]
async fn usage_matches_the_rows() {
    let mut checked = 0;
    for section in split_table(ROWS, "= ", 5) {
        let daemon = Daemon::start().await;
        let mut client = RespClient::connect(&daemon).await;
        let mut now = 0_u64;
        let rows = section.lines().skip(1).filter(|row| !row.is_empty() && !row.starts_with('#'));
        for row in rows {
            let (at, row) = row.split_once(" ms: ").unwrap();
            let (arguments, expected) = row.split_once(" => ").unwrap();
            let at: u64 = at.replace(',', "").parse().unwrap();
            daemon.clock.advance(Micros::from_millis(at - now));
            now = at;
            let reply = client.call(&format!("CL.THROTTLE {arguments}")).await;
            assert_eq!(reply.replace(':', ""), format!("*5 {expected}"), "{row} at {at} ms");
            checked += 1;
        }
    }
    assert_eq!(checked, 49);
}

/// Invalid arguments and their errors.
const INVALID: &str = r#"
CL.THROTTLE k 15 30 =>
  -ERR wrong number of arguments for 'cl.throttle' command; usage: CL.THROTTLE key max-burst count
  period [quantity]
CL.THROTTLE k 15 30 60 1 1 =>
  -ERR wrong number of arguments for 'cl.throttle' command; usage: CL.THROTTLE key max-burst count
  period [quantity]
CL.THROTTLE k x 30 60 =>
  -ERR Couldn't parse as integer: max_burst is "x"; write digits only, at most 9223372036854775807
CL.THROTTLE k 15 3.5 60 =>
  -ERR Couldn't parse as integer: count is "3.5"; write digits only, at most 9223372036854775807
CL.THROTTLE k 15 30 9223372036854775808 =>
  -ERR Couldn't parse as integer: period is "9223372036854775808"; write digits only, at most
  9223372036854775807
CL.THROTTLE k 15 30 60  =>
  -ERR Couldn't parse as integer: quantity is ""; write digits only, at most 9223372036854775807
CL.THROTTLE k -1 30 60 => -ERR max_burst is -1; it must be 0 or more
CL.THROTTLE k 15 -30 60 => -ERR count is -30; it must be 1 or more
CL.THROTTLE k 15 30 -60 => -ERR period is -60; it must be 1 or more
CL.THROTTLE k 15 0 60 => -ERR Zero rates are not supported; count and period must be 1 or more
CL.THROTTLE k 15 30 0 => -ERR Zero rates are not supported; count and period must be 1 or more
CL.THROTTLE k 15 30 60 -1 =>
  -ERR quantity is -1; it must be 0 or more; a negative one does not give back
CL.THROTTLE k 15 30 60 9007199254740992 =>
  -ERR quantity is 9007199254740992; it must be at most 9007199254740991
CL.THROTTLE k 15 30 31622401 =>
  -ERR period: the window is 31622401s; windows and leases are whole milliseconds from 1ms to 366d
CL.THROTTLE  15 30 60 =>
  -ERR the key is empty; it must be 1 to 65536 bytes that name who is limited
"#;

#[tokio::test]
async fn invalid_numbers_are_rejected_with_the_remedy() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let max = i64::MAX;
    check_rows(&mut client, INVALID, 15).await;
    for command in
        [format!("k {max} 1 1"), format!("k 1 {max} 1"), "k 9007199254740990 1 60".to_owned()]
    {
        let reply = client.call(&format!("CL.THROTTLE {command}")).await;
        assert!(reply.contains("the nearest lower limit that fits is"), "{reply}");
        let fits = reply
            .split("max_burst ")
            .nth(1)
            .unwrap()
            .replace(", count", "")
            .replace(", period", "");
        let reply = client.call(&format!("CL.THROTTLE k {fits}")).await;
        assert!(reply.starts_with("*5 :0"), "{fits}: {reply}");
        client.call("DEL k").await;
    }
}

#[tokio::test]
async fn keys_may_be_any_bytes_and_are_distinct() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let long = vec![0xff; 4_096];
    let keys: [&[u8]; 6] = [b"\0", b"\r\n", b"k\xff", b"k", b"K", &long];
    for remaining in [":1", ":0"] {
        for key in keys {
            let reply = client.call_bytes(&[b"cl.throttle", key, b"1", b"1", b"60"]).await;
            assert!(reply.starts_with(&format!("*5 :0 :2 {remaining} ")), "{reply}");
        }
    }
    let reply = client.call("TOLLGATE.CHECK bucket k").await;
    assert!(reply.contains("remaining :1"), "a policy has a separate state: {reply}");
}

#[tokio::test]
async fn recovered_and_deleted_keys_are_forgotten() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let rows = "
EXISTS a b => :0
TTL a => :-2
PTTL a => :-2
CL.THROTTLE a 9 1 1 3 => *5 :0 :10 :7 :-1 :3
CL.THROTTLE b 9 1 1 => *5 :0 :10 :9 :-1 :1
EXISTS a b a c => :3
TTL a => :3
PTTL b => :1000
DEL b c => :1
EXISTS b => :0
CL.THROTTLE b 9 1 1 0 => *5 :0 :10 :10 :-1 :0
UNLINK b => :0
";
    check_rows(&mut client, rows, 12).await;
    daemon.clock.advance(Micros::new(2_000_001));
    assert_eq!(client.call("TTL a").await, ":1");
    assert_eq!(client.call("PTTL a").await, ":1000");
    daemon.clock.advance(Micros::new(999_999));
    assert_eq!(client.call("TTL a").await, ":-2");
    assert_eq!(client.call("DEL a a").await, ":0");
}

#[tokio::test]
async fn long_pipelines_are_answered_in_order() {
    const COMMANDS: usize = 10_000;
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let command = encode(&[b"CL.THROTTLE", b"k", b"9999", b"1", b"3600"]);
    let (mut sent, mut expected) = (Vec::new(), Vec::new());
    for index in 0..COMMANDS {
        sent.extend_from_slice(&command);
        let left = COMMANDS - 1 - index;
        let reset = 3_600 * (index + 1);
        let reply = format!("*5\r\n:0\r\n:10000\r\n:{left}\r\n:-1\r\n:{reset}\r\n");
        expected.extend_from_slice(reply.as_bytes());
    }
    client.send(&sent).await;
    client.expect(&expected).await;
}

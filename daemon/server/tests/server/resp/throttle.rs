//! `CL.THROTTLE`, as redis-cell answers it.

use tollgate::Micros;

use super::{Talk, command};
use crate::daemon::Daemon;

/// Asks at times, in ms since the first, and compares.
async fn check(rows: &[(u64, &str, &str)]) {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let mut now = 0;
    for (at, asked, expected) in rows {
        daemon.clock.advance(Micros::from_millis(at - now));
        now = *at;
        let said = talk.ask(&format!("CL.THROTTLE {asked}")).await;
        assert_eq!(said.replace(':', ""), format!("*5 {expected}"), "{asked} at {at} ms");
    }
}

#[tokio::test]
async fn a_bucket_is_spent_and_refilled_as_in_redis_cell() {
    check(&[
        (0, "k 4 1 1 6", "1 5 5 -1 0"),
        (0, "k 4 1 1", "0 5 4 -1 1"),
        (0, "k 4 1 1", "0 5 3 -1 2"),
        (0, "k 4 1 1", "0 5 2 -1 3"),
        (0, "k 4 1 1", "0 5 1 -1 4"),
        (0, "k 4 1 1", "0 5 0 -1 5"),
        (0, "k 4 1 1", "1 5 0 1 5"),
        (3_000, "k 4 1 1", "0 5 2 -1 3"),
        // 3.9 s are told as 4.
        (3_100, "k 4 1 1", "0 5 1 -1 4"),
        (4_000, "k 4 1 1", "0 5 1 -1 4"),
        (8_000, "k 4 1 1", "0 5 4 -1 1"),
        (9_500, "k 4 1 1", "0 5 4 -1 1"),
        (9_500, "k 4 1 1 0", "0 5 4 -1 1"),
        (9_500, "k 4 1 1 2", "0 5 2 -1 3"),
        (9_500, "k 4 1 1 5", "1 5 2 3 3"),
    ])
    .await;
}

#[tokio::test]
async fn whole_seconds_are_told_exactly_and_parts_of_one_rounded_up() {
    check(&[
        (0, "a 15 30 60", "0 16 15 -1 2"),
        (0, "b 0 1 2", "0 1 0 -1 2"),
        (0, "b 0 1 2", "1 1 0 2 2"),
        (1, "b 0 1 2", "1 1 0 2 2"),
        (1_000, "b 0 1 2", "1 1 0 1 1"),
        (1_001, "b 0 1 2", "1 1 0 1 1"),
        (2_000, "b 0 1 2", "0 1 0 -1 2"),
        // Less than a millisecond is told as a second, not as none.
        (2_000, "c 0 6000 1", "0 1 0 -1 1"),
        (2_000, "c 0 6000 1", "1 1 0 1 1"),
        (2_001, "c 0 6000 1", "0 1 0 -1 1"),
        // Nothing is changed by asking for nothing, whatever is left.
        (2_001, "b 0 1 2 0", "0 1 0 -1 2"),
    ])
    .await;
}

#[tokio::test]
async fn other_numbers_keep_what_was_used() {
    check(&[
        (0, "k 9 10 60 6", "0 10 4 -1 36"),
        (0, "k 4 10 60", "1 5 0 6 30"),
        (0, "k 19 10 60", "0 20 13 -1 42"),
        (0, "k 9 20 60 0", "0 10 3 -1 21"),
    ])
    .await;
}

#[tokio::test]
async fn another_period_keeps_what_was_used() {
    check(&[
        (0, "k 9 10 60 6", "0 10 4 -1 36"),
        (0, "k 9 10 30 0", "0 10 4 -1 18"),
        (0, "k 9 10 30", "0 10 3 -1 21"),
        // Each rate drains by itself, and both are charged.
        (3_000, "k 9 10 60 0", "0 10 3 -1 39"),
        (3_000, "k 9 10 30 0", "0 10 4 -1 18"),
        // The same rate over another period is the same.
        (3_000, "k 9 20 120 0", "0 10 3 -1 39"),
        (3_000, "k 9 1 3 5", "1 10 4 3 18"),
        (3_000, "week 9 10 604800 6", "0 10 4 -1 362880"),
        (3_000, "week 9 10 2592000 0", "0 10 4 -1 1555200"),
        (3_000, "week 9 10 1 0", "0 10 4 -1 1"),
    ])
    .await;
}

#[tokio::test]
async fn a_period_that_does_not_divide_210_days_begins_anew() {
    check(&[
        (0, "k 9 10 7776000 6", "0 10 4 -1 4665600"),
        (0, "k 4 10 7776000 0", "0 5 0 -1 3888000"),
        (0, "k 9 10 60 0", "0 10 10 -1 0"),
        (0, "k 9 10 60", "0 10 9 -1 6"),
        (0, "k 9 10 7776000 0", "0 10 4 -1 4665600"),
        (0, "odd 9 10 1024", "0 10 9 -1 103"),
        (0, "odd 9 10 1024 10", "1 10 9 103 103"),
        // More than can be counted in 210 days.
        (0, "fast 9 2000000000000 1", "0 10 9 -1 1"),
        (0, "fast 9 2000000000000 1 11", "1 10 9 -1 1"),
    ])
    .await;
}

#[tokio::test]
async fn numbers_that_are_none_are_refused_with_the_remedy() {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let most = i64::MAX;
    for (asked, expected) in [
        (
            "k 15 30",
            "-ERR wrong number of arguments for 'cl.throttle' command; usage: CL.THROTTLE key max-burst count period [quantity]",
        ),
        (
            "k 15 30 60 1 1",
            "-ERR wrong number of arguments for 'cl.throttle' command; usage: CL.THROTTLE key max-burst count period [quantity]",
        ),
        (
            "k x 30 60",
            "-ERR Couldn't parse as integer: max_burst is \"x\"; write digits only, at most 9223372036854775807",
        ),
        (
            "k 15 3.5 60",
            "-ERR Couldn't parse as integer: count is \"3.5\"; write digits only, at most 9223372036854775807",
        ),
        (
            "k 15 30 9223372036854775808",
            "-ERR Couldn't parse as integer: period is \"9223372036854775808\"; write digits only, at most 9223372036854775807",
        ),
        (
            "k 15 30 60 ",
            "-ERR Couldn't parse as integer: quantity is \"\"; write digits only, at most 9223372036854775807",
        ),
        ("k -1 30 60", "-ERR max_burst is -1; it must be 0 or more"),
        ("k 15 -30 60", "-ERR count is -30; it must be 1 or more"),
        ("k 15 30 -60", "-ERR period is -60; it must be 1 or more"),
        ("k 15 0 60", "-ERR Zero rates are not supported; count and period must be 1 or more"),
        ("k 15 30 0", "-ERR Zero rates are not supported; count and period must be 1 or more"),
        (
            "k 15 30 60 -1",
            "-ERR quantity is -1; it must be 0 or more; a negative one does not give back",
        ),
        (
            "k 15 30 60 9007199254740992",
            "-ERR quantity is 9007199254740992; it must be at most 9007199254740991",
        ),
        (
            "k 15 30 31622401",
            "-ERR period: the window is 31622401s; windows and leases are whole milliseconds from 1ms to 366d",
        ),
        (
            " 15 30 60",
            "-ERR the key is empty; it must be 1 to 65536 bytes that name who is limited",
        ),
    ] {
        assert_eq!(talk.ask(&format!("CL.THROTTLE {asked}")).await, expected, "{asked}");
    }
    for asked in
        [format!("k {most} 1 1"), format!("k 1 {most} 1"), "k 9007199254740990 1 60".to_owned()]
    {
        let said = talk.ask(&format!("CL.THROTTLE {asked}")).await;
        assert!(said.contains("the nearest lower limit that fits is"), "{said}");
        let fits =
            said.split("max_burst ").nth(1).unwrap().replace(", count", "").replace(", period", "");
        let said = talk.ask(&format!("CL.THROTTLE k {fits}")).await;
        assert!(said.starts_with("*5 :0"), "{fits}: {said}");
        talk.ask("DEL k").await;
    }
}

#[tokio::test]
async fn any_bytes_are_a_key_and_no_two_keys_share() {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let long = vec![0xff; 65_536];
    let keys: [&[u8]; 6] = [b"\0", b"\r\n", b"k\xff", b"k", b"K", &long];
    for remaining in [":1", ":0"] {
        for key in keys {
            let said = talk.ask_bytes(&[b"cl.throttle", key, b"1", b"1", b"60"]).await;
            assert!(said.starts_with(&format!("*5 :0 :2 {remaining} ")), "{said}");
        }
    }
    let said = talk.ask("TOLLGATE.CHECK bucket k").await;
    assert!(said.contains("remaining :1"), "a policy's state is another: {said}");
}

#[tokio::test]
async fn keys_are_forgotten_once_they_have_recovered_or_are_deleted() {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    for (asked, expected) in [
        ("EXISTS a b", ":0"),
        ("TTL a", ":-2"),
        ("PTTL a", ":-2"),
        ("CL.THROTTLE a 9 1 1 3", "*5 :0 :10 :7 :-1 :3"),
        ("CL.THROTTLE b 9 1 1", "*5 :0 :10 :9 :-1 :1"),
        ("EXISTS a b a c", ":3"),
        ("TTL a", ":3"),
        ("PTTL b", ":1000"),
        ("DEL b c", ":1"),
        ("EXISTS b", ":0"),
        ("CL.THROTTLE b 9 1 1 0", "*5 :0 :10 :10 :-1 :0"),
        ("UNLINK b", ":0"),
    ] {
        assert_eq!(talk.ask(asked).await, expected, "{asked}");
    }
    daemon.clock.advance(Micros::new(2_000_001));
    assert_eq!(talk.ask("TTL a").await, ":1");
    assert_eq!(talk.ask("PTTL a").await, ":1000");
    daemon.clock.advance(Micros::new(999_999));
    assert_eq!(talk.ask("TTL a").await, ":-2");
    assert_eq!(talk.ask("DEL a a").await, ":0");
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order() {
    const COMMANDS: usize = 10_000;
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let asked = command(&[b"CL.THROTTLE", b"k", b"9999", b"1", b"3600"]);
    let (mut sent, mut expected) = (Vec::new(), Vec::new());
    for index in 0..COMMANDS {
        sent.extend_from_slice(&asked);
        let left = COMMANDS - 1 - index;
        let reset = 3_600 * (index + 1);
        let said = format!("*5\r\n:0\r\n:10000\r\n:{left}\r\n:-1\r\n:{reset}\r\n");
        expected.extend_from_slice(said.as_bytes());
    }
    talk.send(&sent).await;
    talk.expect(&expected).await;
}

//! Transactions, which clients wrap their pipelines in.

use super::{Talk, words};
use crate::daemon::{Daemon, POLICIES};

#[tokio::test]
async fn what_is_queued_is_done_in_order_and_answered_at_once() {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    for (asked, expected) in [
        ("EXEC", "-ERR EXEC without MULTI"),
        ("DISCARD", "-ERR DISCARD without MULTI"),
        ("UNWATCH", "+OK"),
        ("MULTI", "+OK"),
        ("EXEC", "*0"),
        ("MULTI", "+OK"),
        ("CL.THROTTLE k 1 1 60", "+QUEUED"),
        ("PING", "+QUEUED"),
        ("CL.THROTTLE k x 1 60", "+QUEUED"),
        ("CL.THROTTLE k 1 1 60", "+QUEUED"),
        ("UNWATCH", "+QUEUED"),
        (
            "EXEC",
            "*5 *5 :0 :2 :1 :-1 :60 +PONG -ERR Couldn't parse as integer: max_burst is \"x\"; write \
             digits only, at most 9223372036854775807 *5 :0 :2 :0 :-1 :120 +OK",
        ),
        ("PING", "+PONG"),
        ("MULTI", "+OK"),
        ("MULTI", "-ERR MULTI calls can not be nested; send EXEC or DISCARD first"),
        ("WATCH a", "-ERR WATCH inside MULTI is not allowed"),
        ("CL.THROTTLE k 1 1 60", "+QUEUED"),
        ("DISCARD", "+OK"),
        ("TTL k", ":120"),
        ("MULTI", "+OK"),
        ("PING", "+QUEUED"),
        ("RESET", "+RESET"),
        ("EXEC", "-ERR EXEC without MULTI"),
    ] {
        assert_eq!(talk.ask(asked).await, expected, "{asked}");
    }
}

#[tokio::test]
async fn what_could_not_be_queued_undoes_the_transaction() {
    let yaml = format!("limits: {{ pipeline: 3, body: 64 }}\n{POLICIES}");
    let daemon = Daemon::start_with(&yaml).await;
    let mut talk = Talk::with(&daemon).await;
    let long = format!("ECHO {}", "x".repeat(64));
    let many = format!("ECHO{}", " x".repeat(63).repeat(9));
    for (queued, last) in [
        (&["NO"][..], "-ERR unknown command"),
        (&["CL.THROTTLE k"], "-ERR wrong number of arguments"),
        (&["PING", "PING", "PING", "PING"], "-ERR a transaction has at most 3 commands of 1024"),
        (&[&long, &long, &*many], "-ERR wrong number of arguments"),
    ] {
        assert_eq!(talk.ask("MULTI").await, "+OK");
        assert_eq!(talk.ask("CL.THROTTLE k 1 1 60").await, "+QUEUED");
        for (index, asked) in queued.iter().enumerate() {
            let said = talk.ask(asked).await;
            if said != "+QUEUED" {
                assert!(said.starts_with(last), "{said}");
                break;
            }
            assert!(index + 1 < queued.len(), "{queued:?}");
        }
        let said = talk.ask("EXEC").await;
        assert_eq!(said, "-EXECABORT Transaction discarded because of previous errors.");
        assert_eq!(talk.ask("EXISTS k").await, ":0");
    }
}

#[tokio::test]
async fn a_pipeline_in_a_transaction_comes_as_one() {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let mut sent = words("MULTI");
    (0..1_000).for_each(|_| sent.extend(words("CL.THROTTLE k 0 1 60")));
    sent.extend(words("EXEC"));
    sent.extend(words("PING"));
    talk.send(&sent).await;
    assert_eq!(talk.reply().await, "+OK");
    for _ in 0..1_000 {
        assert_eq!(talk.reply().await, "+QUEUED");
    }
    let said = talk.reply().await;
    assert!(said.starts_with("*1000 *5 :0 :1 :0 :-1 :60 *5 :1 :1 :0 :60 :60 "), "{said}");
    assert_eq!(said.matches(":1 :1 :0 :60 :60").count(), 999);
    assert_eq!(talk.reply().await, "+PONG");
}

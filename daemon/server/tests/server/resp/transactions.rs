//! Transactions, in which clients wrap their pipelines.

use super::{RespClient, encode_words};
use crate::support::daemon::{Daemon, POLICIES};

#[tokio::test]
async fn queued_commands_run_in_order_on_exec() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    for (command, expected) in [
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
        assert_eq!(client.call(command).await, expected, "{command}");
    }
}

#[tokio::test]
async fn a_rejected_command_aborts_the_transaction() {
    let yaml = format!("limits: {{ pipeline: 3, body: 64 }}\n{POLICIES}");
    let daemon = Daemon::start_with(&yaml).await;
    let mut client = RespClient::connect(&daemon).await;
    let long = format!("ECHO {}", "x".repeat(64));
    let many = format!("ECHO{}", " x".repeat(63).repeat(9));
    for (queued, error) in [
        (&["NO"][..], "-ERR unknown command"),
        (&["CL.THROTTLE k"], "-ERR wrong number of arguments"),
        (&["PING", "PING", "PING", "PING"], "-ERR a transaction has at most 3 commands of 1024"),
        (&[&long, &long, &*many], "-ERR wrong number of arguments"),
    ] {
        assert_eq!(client.call("MULTI").await, "+OK");
        assert_eq!(client.call("CL.THROTTLE k 1 1 60").await, "+QUEUED");
        for (index, command) in queued.iter().enumerate() {
            let reply = client.call(command).await;
            if reply != "+QUEUED" {
                assert!(reply.starts_with(error), "{reply}");
                break;
            }
            assert!(index + 1 < queued.len(), "{queued:?}");
        }
        let reply = client.call("EXEC").await;
        assert_eq!(reply, "-EXECABORT Transaction discarded because of previous errors.");
        assert_eq!(client.call("EXISTS k").await, ":0");
    }
}

#[tokio::test]
async fn a_transaction_may_wrap_a_pipeline() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let mut sent = encode_words("MULTI");
    (0..1_000).for_each(|_| sent.extend(encode_words("CL.THROTTLE k 0 1 60")));
    sent.extend(encode_words("EXEC"));
    sent.extend(encode_words("PING"));
    client.send(&sent).await;
    assert_eq!(client.read_reply().await, "+OK");
    for _ in 0..1_000 {
        assert_eq!(client.read_reply().await, "+QUEUED");
    }
    let reply = client.read_reply().await;
    assert!(reply.starts_with("*1000 *5 :0 :1 :0 :-1 :60 *5 :1 :1 :0 :60 :60 "), "{reply}");
    assert_eq!(reply.matches(":1 :1 :0 :60 :60").count(), 999);
    assert_eq!(client.read_reply().await, "+PONG");
}

//! Tokens: scopes, policies and authentication commands.

use tokio::time::Instant;
use tollgate_daemon::Config;
use tollgate_engine::WRONG_TOKEN_DELAY;

use super::RespClient;
use crate::http::access;
use crate::support::ID;
use crate::support::daemon::{Daemon, POLICIES};

#[tokio::test]
async fn tokens_allow_the_commands_of_their_scopes() {
    let daemon = access::start().await;
    let lease = |operation: &str| format!("TOLLGATE.{operation} slots a LEASE {ID}");
    for (command, tokens) in [
        ("CL.THROTTLE a 1 1 1", "check admin"),
        ("TOLLGATE.CHECK bucket a", "check admin"),
        ("TOLLGATE.PEEK bucket a", "check read admin"),
        ("TOLLGATE.TAKE bucket a", "check admin"),
        ("TOLLGATE.RESERVE queue a", "check admin"),
        (&format!("TOLLGATE.CANCEL queue a RESERVATION {ID}"), "check admin"),
        (&lease("ACQUIRE"), "check admin"),
        (&lease("RENEW"), "check admin"),
        (&lease("RELEASE"), "check admin"),
        ("TOLLGATE.INSPECT bucket a", "read admin"),
        ("TOLLGATE.REFUND bucket a", "operate admin"),
        ("TOLLGATE.PENALIZE bucket a", "operate admin"),
        ("TOLLGATE.RESET bucket a", "operate admin"),
        ("TOLLGATE.SETTLE bucket a ID r COST 1", "check admin"),
        ("TOLLGATE.BLOCK bucket a", "operate admin"),
        ("TOLLGATE.UNBLOCK bucket a", "operate admin"),
        ("TOLLGATE.CHECK LIMIT 1/s a", "admin"),
        ("TOLLGATE.RESET LIMIT 1/s a", "operate admin"),
        ("DEL a", "operate admin"),
        ("UNLINK a", "operate admin"),
        ("EXISTS a", "check read admin"),
        ("TTL a", "check read admin"),
        ("DBSIZE", "read admin"),
        ("PING", "check read operate admin"),
        ("COMMAND COUNT", "check read operate admin"),
    ] {
        let mut client = RespClient::connect(&daemon).await;
        assert!(client.call(command).await.starts_with("-NOAUTH "), "{command}");
        for name in ["check", "read", "operate", "admin"] {
            assert_eq!(client.call(&format!("AUTH the-secret-of-{name}")).await, "+OK");
            let reply = client.call(command).await;
            let is_allowed = tokens.split(' ').any(|part| part == name);
            assert_eq!(reply.starts_with("-NOPERM "), !is_allowed, "{command} {name}: {reply}");
            assert!(is_allowed || reply.contains(&format!("\"{name}\"")), "{reply}");
        }
    }
}

#[tokio::test]
async fn loopback_may_operate_only_if_the_configuration_says_so() {
    let daemon = Daemon::start_unchanged(Config::from_yaml(POLICIES).unwrap()).await;
    let mut client = RespClient::connect(&daemon).await;
    for command in ["DEL a", "TOLLGATE.BLOCK bucket a", "TOLLGATE.CHECK LIMIT 1/s a"] {
        let reply = client.call(command).await;
        assert!(reply.starts_with("-NOPERM "), "{reply}");
        assert!(
            reply.contains("needs a token with the scope operate; configure tokens"),
            "{reply}"
        );
    }
    assert!(client.call("TOLLGATE.CHECK bucket a").await.starts_with("*30 $7 allowed :1"));
    let daemon = Daemon::start().await;
    assert_eq!(RespClient::connect(&daemon).await.call("DEL a").await, ":0");
}

#[tokio::test]
async fn tokens_are_restricted_to_their_policies() {
    let daemon = access::start().await;
    let mut client = RespClient::connect(&daemon).await;
    assert_eq!(client.call("AUTH narrow the-secret-of-narrow").await, "+OK");
    for (command, is_allowed) in [
        ("TOLLGATE.CHECK bucket a", true),
        ("TOLLGATE.CHECK log a", true),
        ("TOLLGATE.CHECK pair a", false),
        ("TOLLGATE.CHECK bucket a AND pair a", false),
        ("TOLLGATE.CHECK LIMIT 1/s a", false),
        ("TOLLGATE.RESET pair a", false),
        ("CL.THROTTLE a 1 1 1", false),
        ("DEL a", false),
        ("TTL a", false),
    ] {
        let reply = client.call(command).await;
        let is_denied = reply.starts_with("-NOPERM the token \"narrow\" is not valid for");
        assert_ne!(is_denied, is_allowed, "{reply}");
    }
}

#[tokio::test]
async fn auth_and_hello_accept_tokens() {
    let daemon = access::start().await;
    for (command, expected) in [
        ("AUTH the-secret-of-check", "+OK"),
        ("AUTH check the-secret-of-check", "+OK"),
        ("AUTH default the-secret-of-check", "+OK"),
        ("HELLO 3 AUTH check the-secret-of-check", "%7"),
        ("HELLO 2 AUTH default the-secret-of-check SETNAME x", "*14"),
        ("AUTH read the-secret-of-check", "-WRONGPASS"),
        ("AUTH unknown-secret", "-WRONGPASS"),
        ("HELLO 3 AUTH check unknown-secret", "-WRONGPASS"),
        ("HELLO 3", "-NOAUTH"),
        ("NOTHING", "-NOAUTH"),
        ("QUIT", "+OK"),
    ] {
        let mut client = RespClient::connect(&daemon).await;
        let reply = client.call(command).await;
        assert!(reply.starts_with(expected), "{command}: {reply}");
        assert!(!reply.contains("secret-of"), "{reply}");
        if command != "QUIT" {
            let is_allowed = !expected.starts_with('-');
            assert_eq!(client.call("PING").await == "+PONG", is_allowed, "{command}");
            assert_eq!(client.call("RESET").await, "+RESET");
            assert!(client.call("PING").await.starts_with("-NOAUTH"), "{command}");
        }
    }
}

#[tokio::test]
async fn each_wrong_token_is_answered_after_a_delay() {
    let daemon = access::start().await;
    let mut client = RespClient::connect(&daemon).await;
    for command in ["AUTH unknown-secret", "HELLO 3 AUTH check unknown-secret"] {
        let start = Instant::now();
        assert!(client.call(command).await.starts_with("-WRONGPASS"), "{command}");
        assert!(start.elapsed() >= WRONG_TOKEN_DELAY, "{command}: {:?}", start.elapsed());
    }
    let start = Instant::now();
    let sent = ["AUTH unknown", "AUTH unknown", "PING", "AUTH the-secret-of-check", "PING"];
    let replies = client.call_all(&sent).await;
    let expected = ["-WRONGPASS", "-WRONGPASS", "-NOAUTH", "+OK", "+PONG"];
    for (reply, expected) in replies.iter().zip(expected) {
        assert!(reply.starts_with(expected), "{replies:?}");
    }
    assert!(start.elapsed() >= WRONG_TOKEN_DELAY * 2, "{:?}", start.elapsed());
    // A transaction does not shorten the delay.
    let start = Instant::now();
    let replies = client.call_all(&["MULTI", "AUTH unknown", "AUTH unknown", "EXEC"]).await;
    assert!(replies[3].starts_with("*2 -WRONGPASS"), "{replies:?}");
    assert!(start.elapsed() >= WRONG_TOKEN_DELAY * 2, "{:?}", start.elapsed());
}

#[tokio::test]
async fn unauthenticated_clients_are_limited_to_small_frames() {
    let daemon = access::start().await;
    for sent in ["*11\r\n", "*1\r\n$16385\r\n"] {
        let mut client = RespClient::connect(&daemon).await;
        client.send(sent.as_bytes()).await;
        let reply = client.read_until_closed().await;
        assert!(reply.starts_with("-ERR Protocol error: invalid "), "{reply}");
        let mut client = RespClient::connect(&daemon).await;
        assert_eq!(client.call("AUTH the-secret-of-check").await, "+OK");
        client.send(sent.as_bytes()).await;
        assert_eq!(RespClient::connect(&daemon).await.call("RESET").await, "+RESET");
    }
}

#[tokio::test]
async fn an_auth_in_a_transaction_applies_to_the_commands_after_it() {
    let daemon: Daemon = access::start().await;
    let mut client = RespClient::connect(&daemon).await;
    for (command, expected) in [
        ("MULTI", "-NOAUTH"),
        ("AUTH the-secret-of-check", "+OK"),
        ("MULTI", "+OK"),
        ("DEL a", "+QUEUED"),
        ("AUTH the-secret-of-admin", "+QUEUED"),
        ("DEL a", "+QUEUED"),
        ("EXEC", "*3 -NOPERM"),
    ] {
        let reply = client.call(command).await;
        assert!(reply.starts_with(expected), "{command}: {reply}");
        assert!(command != "EXEC" || reply.ends_with("+OK :0"), "{reply}");
    }
}

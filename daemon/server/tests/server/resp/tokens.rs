//! Tokens: scopes, policies and authentication commands.

use super::RespClient;
use crate::http::access;
use crate::support::ID;
use crate::support::daemon::Daemon;

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
            assert_eq!(client.call(&format!("AUTH secret-of-{name}")).await, "+OK");
            let reply = client.call(command).await;
            let is_allowed = tokens.split(' ').any(|part| part == name);
            assert_eq!(reply.starts_with("-NOPERM "), !is_allowed, "{command} {name}: {reply}");
            assert!(is_allowed || reply.contains(&format!("\"{name}\"")), "{reply}");
        }
    }
}

#[tokio::test]
async fn tokens_are_restricted_to_their_policies() {
    let daemon = access::start().await;
    let mut client = RespClient::connect(&daemon).await;
    assert_eq!(client.call("AUTH narrow secret-of-narrow").await, "+OK");
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
        ("AUTH secret-of-check", "+OK"),
        ("AUTH check secret-of-check", "+OK"),
        ("AUTH default secret-of-check", "+OK"),
        ("HELLO 3 AUTH check secret-of-check", "%7"),
        ("HELLO 2 AUTH default secret-of-check SETNAME x", "*14"),
        ("AUTH read secret-of-check", "-WRONGPASS"),
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
async fn unauthenticated_clients_are_limited_to_small_frames() {
    let daemon = access::start().await;
    for sent in ["*11\r\n", "*1\r\n$16385\r\n"] {
        let mut client = RespClient::connect(&daemon).await;
        client.send(sent.as_bytes()).await;
        let reply = client.read_until_closed().await;
        assert!(reply.starts_with("-ERR Protocol error: invalid "), "{reply}");
        let mut client = RespClient::connect(&daemon).await;
        assert_eq!(client.call("AUTH secret-of-check").await, "+OK");
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
        ("AUTH secret-of-check", "+OK"),
        ("MULTI", "+OK"),
        ("DEL a", "+QUEUED"),
        ("AUTH secret-of-admin", "+QUEUED"),
        ("DEL a", "+QUEUED"),
        ("EXEC", "*3 -NOPERM"),
    ] {
        let reply = client.call(command).await;
        assert!(reply.starts_with(expected), "{command}: {reply}");
        assert!(command != "EXEC" || reply.ends_with("+OK :0"), "{reply}");
    }
}

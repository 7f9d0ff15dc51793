//! The crate `redis`: URLs, pipelines and the connection manager.

use std::collections::HashMap;

use redis::{Client, Connection, ErrorKind, FromRedisValue, RedisResult, Value, cmd, pipe};

use crate::process::{Daemon, SECRET, TOKENS};
use crate::start;

fn connect(daemon: &Daemon, more: &str) -> Connection {
    Client::open(format!("{}/{more}", daemon.url)).unwrap().get_connection().unwrap()
}

/// The fields of a decision.
fn decide(connection: &mut Connection, words: &[&str]) -> HashMap<String, Value> {
    cmd(words[0]).arg(&words[1..]).query(connection).unwrap()
}

fn field<T: FromRedisValue>(decision: &HashMap<String, Value>, name: &str) -> T {
    let value = decision.get(name).unwrap_or_else(|| panic!("{name} in {decision:?}"));
    redis::from_redis_value(value.clone()).unwrap()
}

#[test]
fn both_protocols_return_the_same_decision() {
    let daemon = start("");
    for (key, protocol) in [("two", "0"), ("three", "0?protocol=resp3")] {
        let mut connection = connect(&daemon, protocol);
        let pong: String = cmd("PING").query(&mut connection).unwrap();
        assert_eq!(pong, "PONG");
        for (remaining, allowed) in [(2, true), (1, true), (0, true), (0, false)] {
            let decision = decide(&mut connection, &["TOLLGATE.CHECK", "pair", key]);
            assert_eq!(field::<bool>(&decision, "allowed"), allowed, "{decision:?}");
            assert_eq!(field::<i64>(&decision, "remaining"), remaining, "{decision:?}");
            assert_eq!(field::<i64>(&decision, "capacity"), 3, "{decision:?}");
            assert_eq!(field::<i64>(&decision, "granted"), i64::from(allowed), "{decision:?}");
            assert_eq!(field::<i64>(&decision, "retry_after_us") > 0, !allowed, "{decision:?}");
            let limits: Vec<HashMap<String, Value>> = field(&decision, "limits");
            let names: Vec<String> = limits.iter().map(|limit| field(limit, "limit")).collect();
            assert_eq!(names, ["3/d fixed", "100/d log"]);
        }
        let never = decide(&mut connection, &["TOLLGATE.CHECK", "pair", "never", "COST", "4"]);
        assert_eq!(field::<i64>(&never, "retry_after_us"), -2, "{never:?}");
    }
}

#[test]
fn ten_thousand_pipelined_commands_get_replies_in_order() {
    let daemon = start("");
    for (protocol, is_atomic) in [("", false), ("", true), ("0?protocol=resp3", false)] {
        let mut connection = connect(&daemon, protocol);
        let key = format!("{protocol}{is_atomic}");
        let mut commands = pipe();
        for _ in 0..10_000 {
            commands.cmd("CL.THROTTLE").arg(&key).arg(&[8_999, 1, 86_400]);
        }
        if is_atomic {
            commands.atomic();
        }
        let replies: Vec<[i64; 5]> = commands.query(&mut connection).unwrap();
        assert_eq!(replies.len(), 10_000);
        for (at, reply) in (0..).zip(replies) {
            assert_eq!(reply[0], i64::from(at >= 9_000), "{at}: {reply:?}");
            assert_eq!(reply[2], (8_999 - at).max(0), "{at}: {reply:?}");
        }
    }
}

#[test]
fn keys_may_be_any_bytes() {
    let daemon = start("");
    let mut connection = connect(&daemon, "");
    let every: Vec<u8> = (0..=255).collect();
    for (key, remaining) in
        [(&every[..], 4), (&every, 3), (&every[1..], 4), (b"\r\n", 4), (b"\0", 4)]
    {
        let mut check = cmd("TOLLGATE.CHECK");
        let decision: HashMap<String, Value> =
            check.arg("api").arg(key).query(&mut connection).unwrap();
        assert_eq!(field::<i64>(&decision, "remaining"), remaining, "{key:?}");
    }
}

#[test]
fn error_leaves_the_connection_usable() {
    let daemon = start("");
    let mut connection = connect(&daemon, "");
    for words in [
        &["GET", "k"][..],
        &["TOLLGATE.CHECK"],
        &["TOLLGATE.CHECK", "no-such-policy", "k"],
        &["TOLLGATE.CHECK", "api", "k", "COST", "many"],
        &["CL.THROTTLE", "k", "1", "0", "60"],
        &["EXEC"],
    ] {
        let reply: RedisResult<Value> = cmd(words[0]).arg(&words[1..]).query(&mut connection);
        let error = reply.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Server(_)), "{words:?}: {error:?}");
        let decision = decide(&mut connection, &["TOLLGATE.PEEK", "api", "k"]);
        assert_eq!(field::<i64>(&decision, "remaining"), 5, "{words:?}");
    }
}

#[test]
fn token_is_the_password() {
    let daemon = start(TOKENS);
    for (login, is_accepted) in [
        (format!(":{SECRET}@"), true),
        (format!("gateway:{SECRET}@"), true),
        (":guessed@".to_owned(), false),
        (format!("root:{SECRET}@"), false),
    ] {
        for protocol in ["0", "0?protocol=resp3"] {
            let client =
                Client::open(format!("redis://{login}{}/{protocol}", daemon.address())).unwrap();
            let connected = client.get_connection();
            assert_eq!(connected.is_ok(), is_accepted, "{login} {protocol}");
            let Ok(mut connection) = connected else { continue };
            let decision = decide(&mut connection, &["TOLLGATE.PEEK", "api", "k"]);
            assert!(field::<bool>(&decision, "allowed"));
        }
    }
}

#[tokio::test]
async fn concurrent_callers_of_one_connection_get_exactly_the_limit() {
    let daemon = start("");
    let client = Client::open(format!("{}/0?protocol=resp3", daemon.url)).unwrap();
    let manager = client.get_connection_manager().await.unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut manager = manager.clone();
        callers.spawn(async move {
            let mut allowed = 0;
            for _ in 0..40 {
                let mut check = cmd("TOLLGATE.CHECK");
                let decision: HashMap<String, Value> =
                    check.arg("many").arg("shared").query_async(&mut manager).await.unwrap();
                allowed += u32::from(field::<bool>(&decision, "allowed"));
            }
            allowed
        });
    }
    assert_eq!(callers.join_all().await.iter().sum::<u32>(), 1_000);
}

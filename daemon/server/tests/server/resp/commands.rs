//! Connection commands, and the descriptions of all commands.

use std::collections::BTreeSet;

use super::{RespClient, check_rows, encode_words};
use crate::support::daemon::Daemon;

/// Commands that clients send first, on one connection, and their replies.
const HANDSHAKES: &str = r#"
PING => +PONG
ping hi => $2 hi
PING a b => -ERR wrong number of arguments for 'ping' command; usage: PING [message]
ECHO hi => $2 hi
SELECT 0 => +OK
SELECT 1 => -ERR DB index is out of range: "1"; only 0 exists
CLIENT ID => :1
CLIENT GETNAME => $-1
CLIENT SETNAME worker-1 => +OK
CLIENT GETNAME => $8 worker-1
CLIENT SETINFO LIB-NAME redis-py => +OK
CLIENT SETINFO lib-ver 5.0 => +OK
CLIENT SETINFO lib x => -ERR Unrecognized option "lib"; expected lib-name or lib-ver
CLIENT NO-EVICT on => +OK
CLIENT NO-TOUCH on => +OK
CLIENT TRACKING off => +OK
CLIENT TRACKING on BCAST => -ERR TRACKING is not supported: there are no values to cache; send
  CLIENT TRACKING OFF
CLIENT CACHING yes => -ERR CLIENT CACHING can be called only when the client is in tracking mode
CLIENT REPLY on => +OK
CLIENT REPLY off => -ERR CLIENT REPLY supports ON only, not "off"
CLIENT UNPAUSE => +OK
CLIENT GETREDIR => :-1
CLIENT MAINT_NOTIFICATIONS on => -ERR unknown subcommand "MAINT_NOTIFICATIONS". Try CLIENT HELP.
CLIENT ID 1 => -ERR wrong number of arguments for 'client|id' command
CONFIG GET maxmemory => *0
CONFIG SET a b => -ERR CONFIG "SET" is not supported; the daemon is configured by its file, which
  is reloaded when it changes
READONLY => +OK
READWRITE => +OK
TIME => *2 $10 1763650000 $1 0
ROLE => *3 $6 master :0 *0
CLUSTER INFO => -ERR This instance has cluster support disabled
SENTINEL masters => -ERR this is not a sentinel; configure its address in the client as a server
DBSIZE => :0
CL.THROTTLE k 1 1 1 => *5 :0 :2 :1 :-1 :1
DBSIZE => :1
WATCH k => -ERR WATCH is not supported: a check is atomic, and there are no values to watch; leave
  it out
AUTH x => -ERR AUTH called without any token configured; leave it out, or configure tokens
HELLO x => -ERR Protocol version is not an integer or out of range: "x"; write 2 or 3
HELLO 4 => -NOPROTO unsupported protocol version 4; write 2 or 3
HELLO 3 SETNAME => -ERR Syntax error in HELLO at "SETNAME"; write HELLO 3 [AUTH name token]
  [SETNAME name]
HELLO 2 => *14 $6 server $5 redis $7 version $5 7.4.0 $5 proto :2 $2 id :1 $4 mode $10 standalone
  $4 role $6 master $7 modules *0
HELLO 3 SETNAME second => %7 $6 server $5 redis $7 version $5 7.4.0 $5 proto :3 $2 id :1 $4 mode
  $10 standalone $4 role $6 master $7 modules *0
CLIENT GETNAME => $6 second
CONFIG GET * => %0
RESET => +RESET
CLIENT GETNAME => $-1
QUIT => +OK
"#;

#[tokio::test]
async fn client_handshakes_are_answered() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    check_rows(&mut client, HANDSHAKES, 47).await;
    assert_eq!(client.read_until_closed().await, "");
}

#[tokio::test]
async fn info_contains_the_fields_that_clients_read() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let info = client.call("INFO").await;
    for line in [
        "# Server",
        "redis_version:7.4.0",
        "redis_mode:standalone",
        "tollgate_version:",
        "uptime_in_seconds:",
        "connected_clients:1",
        "loading:0",
        "role:master",
        "cluster_enabled:0",
    ] {
        assert!(info.contains(line), "{line} in {info}");
    }
    assert_eq!(
        client.call("INFO replication").await,
        "$48 # Replication\\r\\nrole:master\\r\\nconnected_slaves:0\\r\\n"
    );
    assert_eq!(client.call("INFO nothing").await, "$0 ");
    client.call("HELLO 3").await;
    assert_eq!(client.call("INFO cluster").await, "=34 txt:# Cluster\\r\\ncluster_enabled:0\\r\\n");
    let list = client.call("CLIENT LIST").await;
    assert!(list.contains("id=1 addr=127.0.0.1:"), "{list}");
    assert!(list.contains("user=loopback resp=3"), "{list}");
}

/// Descriptions of commands.
const DESCRIPTIONS: &str = r#"
COMMAND INFO CL.THROTTLE nothing => *2 *10 $11 cl.throttle :-5 *2 +write +fast :1 :1 :1 *2 +@fast
  +@throttle *0 *0 *0 *-1
COMMAND GETKEYS CL.THROTTLE user:42 1 1 1 => *1 $7 user:42
COMMAND GETKEYS del a b => *2 $1 a $1 b
COMMAND GETKEYS TOLLGATE.CHECK api and COST 2 AND LIMIT 1/s b NOTE AND AND ip c => *3 $3 and $1 b
  $1 c
COMMAND GETKEYS PING => -ERR The command has no key arguments
COMMAND GETKEYS TTL => -ERR Invalid number of arguments specified for command
COMMAND GETKEYS PINGS => -ERR Invalid command specified: "PINGS"; did you mean "ping"?
COMMAND DOCS ping => *2 $4 ping *8 $7 summary $29 Returns PONG, or the message. $5 since $5 0.1.0
  $5 group $10 connection $9 arguments *1 *6 $4 name $7 message $4 type $6 string $5 flags *1
  +optional
COMMAND NO => -ERR unknown subcommand "NO"; expected COUNT, INFO, DOCS, LIST or GETKEYS
"#;

#[tokio::test]
async fn command_descriptions_have_the_form_of_redis() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    check_rows(&mut client, DESCRIPTIONS, 9).await;
}

#[tokio::test]
async fn every_listed_command_is_implemented() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let count: usize = client.call("COMMAND COUNT").await[1..].parse().unwrap();
    let list = client.call("COMMAND LIST").await;
    let names: Vec<_> = list.split(' ').skip(2).step_by(2).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), count);
    assert!(client.call("COMMAND").await.starts_with(&format!("*{count} ")));
    assert!(client.call("COMMAND DOCS").await.starts_with(&format!("*{} ", 2 * count)));
    for name in names {
        let mut client = RespClient::connect(&daemon).await;
        let rest = match name {
            "cl.throttle" => " k 1 1 1",
            "tollgate.cancel" | "tollgate.reserve" => {
                " bucket k RESERVATION 0123456789abcdef0123456789abcdef"
            }
            "tollgate.acquire" | "tollgate.renew" | "tollgate.release" => {
                " slots k LEASE 0123456789abcdef0123456789abcdef"
            }
            "tollgate.check" => " bucket settled ID r",
            "tollgate.settle" => " bucket settled ID r COST 0",
            name if name.starts_with("tollgate.") => " bucket k",
            "del" | "unlink" | "exists" | "ttl" | "pttl" | "echo" => " k",
            "select" => " 0",
            "client" => " id",
            "config" => " get x",
            _ => "",
        };
        let reply = client.call(&format!("{}{rest}", name.to_uppercase())).await;
        let is_error = ["watch", "auth", "exec", "discard", "cluster", "sentinel"].contains(&name);
        assert_eq!(reply.starts_with('-'), is_error, "{name}: {reply}");
        assert!(!reply.contains("unknown command"), "{name}: {reply}");
        if name == "quit" {
            continue;
        }
        let usage = client.call(&format!("{name}{}", " x".repeat(1_000))).await;
        assert!(!usage.contains("unknown command"), "{name}: {usage}");
    }
}

#[tokio::test]
async fn commands_before_quit_are_answered() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let mut sent = encode_words("PING");
    sent.extend(encode_words("QUIT"));
    sent.extend(encode_words("PING"));
    client.send(&sent).await;
    assert_eq!(client.read_until_closed().await, "+PONG\\r\\n+OK\\r\\n");
}

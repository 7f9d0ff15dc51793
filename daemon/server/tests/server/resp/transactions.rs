//! Transactions, in which clients wrap their pipelines.

use tollgate_testkit::Server;

use super::{RespClient, check_rows};
use crate::support::daemon::{Daemon, POLICIES};

#[tokio::test]
async fn queued_commands_run_in_order_on_exec() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let rows = r#"
EXEC => -ERR EXEC without MULTI
DISCARD => -ERR DISCARD without MULTI
UNWATCH => +OK
MULTI => +OK
EXEC => *0
MULTI => +OK
CL.THROTTLE k 1 1 60 => +QUEUED
PING => +QUEUED
CL.THROTTLE k x 1 60 => +QUEUED
CL.THROTTLE k 1 1 60 => +QUEUED
UNWATCH => +QUEUED
EXEC => *5 *5 :0 :2 :1 :-1 :60 +PONG -ERR Couldn't parse as integer: max_burst is "x"; write
  digits only, at most 9223372036854775807 *5 :0 :2 :0 :-1 :120 +OK
PING => +PONG
MULTI => +OK
MULTI => -ERR MULTI calls can not be nested; send EXEC or DISCARD first
WATCH a => -ERR WATCH inside MULTI is not allowed
CL.THROTTLE k 1 1 60 => +QUEUED
DISCARD => +OK
TTL k => :120
MULTI => +OK
PING => +QUEUED
RESET => +RESET
EXEC => -ERR EXEC without MULTI
"#;
    check_rows(&mut client, rows, 23).await;
}

#[tokio::test]
async fn a_rejected_command_aborts_the_transaction() {
    let daemon = Daemon::start_with_limits("pipeline: 3, body: 64").await;
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
    let throttles = ["CL.THROTTLE k 0 1 60"; 1_000];
    let commands = [&["MULTI"][..], &throttles, &["EXEC", "PING"]].concat();
    let replies = client.call_all(&commands).await;
    assert_eq!((&*replies[0], &*replies[1_002]), ("+OK", "+PONG"));
    assert!(replies[1..=1_000].iter().all(|reply| reply == "+QUEUED"));
    let reply = &replies[1_001];
    assert!(reply.starts_with("*1000 *5 :0 :1 :0 :-1 :60 *5 :1 :1 :0 :60 :60 "), "{reply}");
    assert_eq!(reply.matches(":1 :1 :0 :60 :60").count(), 999);
}

#[tokio::test]
async fn replies_longer_than_the_output_bound_are_sent_in_parts() {
    let server = Server::start();
    let yaml = format!("limits: {{ output: 16KiB }}\n{POLICIES}");
    for daemon in [Daemon::start_with(&yaml).await, Daemon::start_on(&server, &yaml).await] {
        let mut client = RespClient::connect(&daemon).await;
        let checks = ["TOLLGATE.CHECK bucket k COST 0"; 1_000];
        let commands = [&["MULTI"][..], &checks, &["EXEC", "PING"]].concat();
        let replies = client.call_all(&commands).await;
        assert_eq!(&*replies[1_002], "+PONG");
        assert!(replies[1_001].len() > 16 * 1024 * 10, "{}", replies[1_001].len());
        assert_eq!(replies[1_001].matches("reason").count(), 1_000);
    }
}

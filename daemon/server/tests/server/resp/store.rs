//! On a real Redis or Valkey: the order of replies, and replies while the store is unavailable.

use tollgate_testkit::Server;

use super::{RespClient, Value};
use crate::support::daemon::Daemon;
use crate::support::eventually;

async fn start(server: &Server) -> Daemon {
    let policies = "closed: { limits: [10/h], on_store_error: deny }, open: { limits: [10/h], on_store_error: allow }";
    Daemon::start_on(server, &format!("policies: {{ {policies} }}")).await
}

#[tokio::test]
async fn pipelines_are_answered_in_order() {
    let server = Server::start();
    let daemon = start(&server).await;
    let mut client = RespClient::connect(&daemon).await;
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    for left in (0..500).rev() {
        commands.push("CL.THROTTLE k 499 1 86400".to_owned());
        expected.push(format!("*5 :0 :500 :{left} :-1 :"));
        commands.push(format!("ECHO {left}"));
        expected.push(format!("${} {left}", left.to_string().len()));
    }
    for (command, prefix) in [
        ("HELLO 3", "%7 "),
        ("TOLLGATE.CHECK closed k COST 2", "%15 $7 allowed #t "),
        ("EXISTS k none k", ":2"),
        ("HELLO 2", "*14 "),
        ("TOLLGATE.INSPECT closed k", "*12 "),
        ("MULTI", "+OK"),
        ("CL.THROTTLE k 499 1 86400", "+QUEUED"),
        ("PING", "+QUEUED"),
        ("DEL k none", "+QUEUED"),
        ("CL.THROTTLE k 499 1 86400", "+QUEUED"),
        ("EXEC", "*4 *5 :1 :500 :0 :86400 :43200000 +PONG :1 *5 :0 :500 :499 :-1 :86400"),
        ("TTL none", ":-2"),
        ("TTL k", ":86400"),
        ("CL.THROTTLE k 499 1 604800 0", "*5 :0 :500 :499 :-1 :604800"),
        ("TOLLGATE.CHECK missing k", "-ERR there is no policy"),
    ] {
        commands.push(command.to_owned());
        expected.push(prefix.to_owned());
    }
    let commands: Vec<_> = commands.iter().map(|command| &**command).collect();
    for (reply, expected) in client.call_all(&commands).await.into_iter().zip(expected) {
        assert!(reply.starts_with(&expected), "{reply} instead of {expected}");
    }
}

#[tokio::test]
async fn policies_decide_while_the_store_is_unavailable() {
    let server = Server::start();
    let daemon = start(&server).await;
    let mut client = RespClient::connect(&daemon).await;
    assert_eq!(client.call("CL.THROTTLE k 9 1 60").await, "*5 :0 :10 :9 :-1 :60");
    assert!(client.call("HELLO 3").await.starts_with("%7"));
    server.kill();
    eventually("a degraded decision", async || {
        let reply = client.call_value("TOLLGATE.CHECK open k").await;
        reply.get("degraded") == &Value::Bool(true)
    })
    .await;
    for (policy, allowed) in [("open", true), ("closed", false)] {
        let reply = client.call_value(&format!("TOLLGATE.CHECK {policy} k")).await;
        assert_eq!(reply.get("allowed"), &Value::Bool(allowed), "{reply:?}");
        assert_eq!(reply.get("degraded"), &Value::Bool(true), "{reply:?}");
        assert_eq!(reply.get("reason"), &Value::Text("store".to_owned()), "{reply:?}");
    }
    for command in [
        "CL.THROTTLE k 9 1 60",
        "TOLLGATE.RESET closed k",
        "TOLLGATE.INSPECT open k",
        "DEL a b",
        "TTL k",
    ] {
        let reply = client.call(command).await;
        assert!(reply.starts_with("-TRYAGAIN store unavailable: "), "{command}: {reply}");
        assert!(reply.contains("check its address and that it is running"), "{reply}");
    }
    assert_eq!(client.call("PING").await, "+PONG");
}

#[tokio::test]
async fn checks_that_need_no_store_are_decided_after_the_commands_before_them() {
    let server = Server::start();
    let policies = "policies: { once: { limits: [1/d fixed] }, hot: { limits: [1000/min fixed], mode: leased } }";
    let daemon = Daemon::start_on(&server, policies).await;
    let mut client = RespClient::connect(&daemon).await;
    client.call("HELLO 3").await;
    // The denial is remembered.
    let check = "TOLLGATE.CHECK once k";
    let denied = client.call_all(&[check, check, check]).await;
    assert!(denied[2].contains("allowed #f"), "{denied:?}");
    let replies = client.call_all(&["TOLLGATE.RESET once k", check, check]).await;
    assert!(replies[1].contains("allowed #t"), "{replies:?}");
    assert!(replies[2].contains("allowed #f"), "{replies:?}");
    // The quota is held.
    let check = "TOLLGATE.CHECK hot k";
    eventually("a decision from a lease", async || {
        let reply = client.call_value(check).await;
        reply.get("source") == &Value::Text("lease".to_owned())
    })
    .await;
    let reply = client.call_value("TOLLGATE.INSPECT hot k").await;
    let held = reply.get("held").get("remaining");
    assert!(matches!(held, Value::Int(1..=999)), "{reply:?}");
    let reply = daemon.post("/v1/inspect", r#"{"policy":"hot","key":"k"}"#).await;
    reply.assert(200, r#""held":{"remaining":"#, "inspect");
    let block = "TOLLGATE.BLOCK hot k FOR 60000000";
    let replies = client.call_all(&[check, block, check]).await;
    assert!(replies[0].contains("source $5 lease"), "{replies:?}");
    assert!(replies[2].contains("reason $7 blocked"), "{replies:?}");
}

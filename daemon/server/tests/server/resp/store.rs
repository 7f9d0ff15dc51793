//! On a real Redis or Valkey: replies stay in order, and what is said while the store is away.

use std::time::Duration;

use tollgate_testkit::Server;

use super::value::Value;
use super::{Talk, words};
use crate::daemon::Daemon;

/// A daemon on a server, with time enough for a busy machine.
async fn start(server: &Server) -> Daemon {
    let url = server.url();
    let policies = "closed: { limits: [10/h] }, open: { limits: [10/h], on_store_error: allow }";
    let yaml = format!("store: {{ url: \"{url}\", deadline: 5s }}\npolicies: {{ {policies} }}");
    Daemon::start_on_store(&yaml).await
}

#[tokio::test]
async fn a_pipeline_is_asked_together_and_answered_in_order() {
    let server = Server::start();
    let daemon = start(&server).await;
    let mut talk = Talk::with(&daemon).await;
    let mut sent = Vec::new();
    let mut expected = Vec::new();
    for left in (0..500).rev() {
        sent.extend(words("CL.THROTTLE k 499 1 86400"));
        expected.push(format!("*5 :0 :500 :{left} :-1 :"));
        sent.extend(words(&format!("ECHO {left}")));
        expected.push(format!("${} {left}", left.to_string().len()));
    }
    for (asked, said) in [
        ("HELLO 3", "%7 "),
        ("TOLLGATE.CHECK closed k COST 2", "%15 $7 allowed #t "),
        ("EXISTS k none k", ":2"),
        ("HELLO 2", "*14 "),
        ("TOLLGATE.INSPECT closed k", "*10 "),
        ("MULTI", "+OK"),
        ("CL.THROTTLE k 499 1 86400", "+QUEUED"),
        ("PING", "+QUEUED"),
        ("DEL k none", "+QUEUED"),
        ("CL.THROTTLE k 499 1 86400", "+QUEUED"),
        ("EXEC", "*4 *5 :1 :500 :0 :86400 :43200000 +PONG :1 *5 :0 :500 :499 :-1 :86400"),
        ("TTL none", ":-2"),
        ("TTL k", ":86400"),
        ("CL.THROTTLE k 499 1 604800 0", "*5 :0 :500 :499 :-1 :604800"),
        ("TOLLGATE.CHECK nobody k", "-ERR there is no policy"),
    ] {
        sent.extend(words(asked));
        expected.push(said.to_owned());
    }
    talk.send(&sent).await;
    for expected in expected {
        let said = talk.reply().await;
        assert!(said.starts_with(&expected), "{said} instead of {expected}");
    }
}

#[tokio::test]
async fn while_the_store_is_away_policies_say_what_that_means() {
    let server = Server::start();
    let daemon = start(&server).await;
    let mut talk = Talk::with(&daemon).await;
    assert_eq!(talk.ask("CL.THROTTLE k 9 1 60").await, "*5 :0 :10 :9 :-1 :60");
    assert!(talk.ask("HELLO 3").await.starts_with("%7"));
    server.kill();
    for _ in 0..4_000 {
        let said = talk.ask_value("TOLLGATE.CHECK open k").await;
        if said.get("degraded") == &Value::Bool(true) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for (policy, allowed) in [("open", true), ("closed", false)] {
        let said = talk.ask_value(&format!("TOLLGATE.CHECK {policy} k")).await;
        assert_eq!(said.get("allowed"), &Value::Bool(allowed), "{said:?}");
        assert_eq!(said.get("degraded"), &Value::Bool(true), "{said:?}");
        assert_eq!(said.get("reason"), &Value::Text("store".to_owned()), "{said:?}");
    }
    assert_eq!(talk.ask("CL.THROTTLE k 9 1 60").await, "*5 :1 :10 :0 :-1 :0");
    for asked in ["TOLLGATE.RESET closed k", "TOLLGATE.INSPECT open k", "DEL a b", "TTL k"] {
        let said = talk.ask(asked).await;
        assert!(said.starts_with("-TRYAGAIN "), "{asked}: {said}");
        assert!(said.contains("check its address and that it is running"), "{said}");
    }
    assert_eq!(talk.ask("PING").await, "+PONG");
}

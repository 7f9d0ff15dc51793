//! The audit log: one line for each operation of an operator, and none for other operations.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once};

use tokio::net::UnixStream;
use tollgate_daemon::{Config, Privacy, Tls};
use tollgate_testkit::Server;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default, set_global_default};
use tracing::{Event, Metadata, Subscriber};

use crate::envoy;
use crate::http::access::{bearer, token};
use crate::resp::RespClient;
use crate::support::certificates::Authority;
use crate::support::client::{Client, encode_request};
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::{eventually, parse_rows};
use crate::tls;

/// Collects the lines of the audit log.
#[derive(Clone, Debug, Default)]
struct AuditLog(Arc<Mutex<Vec<Line>>>);

impl AuditLog {
    /// Collects the lines of this thread until the guard is dropped.
    fn subscribe(&self) -> DefaultGuard {
        // Without a global subscriber that is interested in the audit log, a thread without one of
        // its own would disable the events for all threads.
        static GLOBAL: Once = Once::new();
        GLOBAL.call_once(|| {
            // That of another test serves as well.
            let _ = set_global_default(AuditLog::default());
        });
        set_default(self.clone())
    }

    /// Removes and returns the fields of each line, without the peer.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|line| line.fields).collect()
    }

    fn take_peers(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|line| line.peer).collect()
    }
}

impl Subscriber for AuditLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "audit"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of a line, as `name=value` in order.
#[derive(Debug, Default)]
struct Line {
    fields: String,
    /// Kept separately, because its port is different each time.
    peer: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "peer" => write!(self.peer, "{value:?}").unwrap(),
            "message" => assert_eq!(format!("{value:?}"), "audit"),
            name => write!(self.fields, "{name}={value:?} ").unwrap(),
        }
    }
}

/// Operations with their bodies, and the beginnings of their lines.
const OPERATIONS: &str = r#"
> check {"policy":"bucket","key":"user:42"}
<
> inspect {"policy":"bucket","key":"user:42"}
<
> penalize {"policy":"bucket","key":"user:42","cost":2}
< who="loopback" verb="penalize" policy="bucket" key="user:42" asked="cost 2" outcome="done" changed=true granted=2 replayed=false why=""
> block {"policy":"bucket","key":"user:42","for":"30s"}
< who="loopback" verb="block" policy="bucket" key="user:42" asked="for 30 s" outcome="done" changed=true granted=0 replayed=false why=""
> block {"policy":"bucket","key_base64":"AP8K"}
< who="loopback" verb="block" policy="bucket" key="\\0\\xff\\n" asked="for ever" outcome="done" changed=true granted=0 replayed=false why=""
> unblock {"policy":"bucket","key":"absent"}
< who="loopback" verb="unblock" policy="bucket" key="absent" asked="" outcome="done" changed=false granted=0 replayed=false why=""
> reset {"policy":"buckets","key":"a"}
< who="loopback" verb="reset" policy="buckets" key="a" outcome="failed" why="there is no policy \"buckets\"; did you mean \"bucket\"?"
> refund {"policy":"bucket","key":"a","cost":0}
< who="loopback" verb="refund" policy="bucket" key="a" asked="cost 0" outcome="failed" why="
"#;

#[tokio::test]
async fn only_operator_operations_are_audited() {
    let log = AuditLog::default();
    let _guard = log.subscribe();
    let daemon = Daemon::start().await;
    for (row, expected) in parse_rows(OPERATIONS, 8) {
        let (operation, body) = row.split_once(' ').unwrap();
        daemon.post(&format!("/v1/{operation}"), body).await;
        let lines = log.take();
        assert_eq!(lines.len(), usize::from(!expected.is_empty()), "{operation}: {lines:?}");
        assert!(lines.concat().starts_with(expected), "{lines:?}\n{expected}");
    }
}

/// Commands, and the beginnings of their lines.
const COMMANDS: &str = r#"
> DEL a b
< who="unauthenticated" verb="reset" outcome="refused" why="Authentication required
> AUTH the-secret-of-app
<
> CL.THROTTLE a 1 1 1
<
> DEL a
< who="app" verb="reset" policy="@throttle" key="a" outcome="refused" why="reset needs the scope operate
> TOLLGATE.BLOCK bucket a
< who="app" verb="block" policy="bucket" key="a" outcome="refused" why="block needs
> AUTH the-secret-of-ops
<
> DEL a
< who="ops" verb="reset" policy="@throttle" key="a" asked="" outcome="done" changed=true granted=0 replayed=false why=""
> TOLLGATE.BLOCK bucket a FOR 30000000
< who="ops" verb="block" policy="bucket" key="a" asked="for 30 s" outcome="done" changed=true granted=0 replayed=false why=""
> TOLLGATE.RESET buckets a
< who="ops" verb="reset" policy="buckets" key="a" outcome="failed" why="there is no policy \"buckets\"; did you mean \"bucket\"?"
> MULTI
<
> UNLINK a b
<
> EXEC
< who="ops" verb="reset" policy="@throttle" key="a" asked="" outcome="done" changed=false granted=0 replayed=false why="" who="ops" verb="reset" policy="@throttle" key="b" asked="" outcome="done"
"#;

#[tokio::test]
async fn operations_over_resp_are_audited() {
    let mut config = Config::from_yaml(POLICIES).unwrap();
    config.tokens = vec![token("ops", "operate", "'*'"), token("app", "check", "'*'")];
    assert_operations_are_audited_over_resp(Daemon::start_with_config(config.clone()).await).await;
    let server = Server::start();
    let store = Config::from_yaml(&format!("store: {{ url: \"{}\", deadline: 5s }}", server.url()));
    config.store = store.unwrap().store;
    assert_operations_are_audited_over_resp(Daemon::start_on_store(config).await).await;
}

async fn assert_operations_are_audited_over_resp(daemon: Daemon) {
    let log = AuditLog::default();
    let _guard = log.subscribe();
    let mut client = RespClient::connect(&daemon).await;
    for (command, expected) in parse_rows(COMMANDS, 12) {
        client.call(command).await;
        let lines = log.take();
        assert_eq!(lines.is_empty(), expected.is_empty(), "{command}: {lines:?}");
        assert!(lines.concat().starts_with(expected), "{lines:?}\n{expected}");
    }
}

/// A token and a policy, and the beginning of the line of a reset.
const REJECTED: &str = r#"
> ops bucket
< who="ops" verb="reset" policy="bucket" key="KEY" asked="" outcome="done"
> ops log
< who="ops" verb="reset" policy="log" key="KEY" outcome="refused" why="the token \"ops\" is not valid for the policy \"log\"
> app log
< who="app" verb="reset" policy="log" key="KEY" outcome="refused" why="reset needs the scope operate
> anonymous log
< who="unauthenticated" verb="reset" outcome="refused" why="a token is required
"#;

#[tokio::test]
async fn rejected_operations_are_audited_and_keys_follow_the_privacy_setting() {
    let log = AuditLog::default();
    let _guard = log.subscribe();
    for (privacy, key) in [
        (Privacy::Plain, "user:4217"),
        (Privacy::Masked, "us…(≤16)"),
        (Privacy::Hashed, "06468601ecca2006"),
    ] {
        let daemon = Daemon::start_with_options(|config| {
            config.privacy = privacy;
            config.tokens = vec![token("ops", "operate", "bucket"), token("app", "check", "'*'")];
        })
        .await;
        for (row, expected) in parse_rows(REJECTED, 4) {
            let (name, policy) = row.split_once(' ').unwrap();
            let header = if name == "anonymous" { String::new() } else { bearer(name) };
            let expected = expected.replace("KEY", key);
            let body = format!(r#"{{"policy":"{policy}","key":"user:4217"}}"#);
            daemon.post_with("/v1/reset", &header, &body).await;
            let lines = log.take().concat();
            assert!(lines.starts_with(&expected), "{lines}\n{expected}");
        }
    }
}

/// Requests over Envoy's protocol, and the beginnings of their lines.
const ENVOY: &str = r#"
> log | user=7
<
> log | user=7 -1
< who="loopback" verb="refund" policy="log" key="user=7" asked="cost 1" outcome="done" changed=true granted=1 replayed=false why=""
> log | user=7 | user=8 3/HOUR
< who="loopback" verb="limit" policy="log" key="user=8" asked="3/h fixed cost 1" outcome="done" changed=true granted=1 replayed=false why=""
"#;

#[tokio::test]
async fn refunds_and_limits_over_the_protocol_of_envoy_are_audited() {
    let log = AuditLog::default();
    let _guard = log.subscribe();
    let daemon = Daemon::start().await;
    let mut client = envoy::client::connect(&daemon).await;
    for (request, expected) in parse_rows(ENVOY, 3) {
        assert!(envoy::client::call(&mut client, request).await.starts_with("OK"), "{request}");
        let lines = log.take();
        assert_eq!(lines.len(), usize::from(!expected.is_empty()), "{request}: {lines:?}");
        assert!(lines.concat().starts_with(expected), "{lines:?}\n{expected}");
    }
}

#[tokio::test]
async fn the_peer_is_audited() {
    let log = AuditLog::default();
    let _guard = log.subscribe();
    let body = r#"{"policy":"bucket","key":"a"}"#;

    let daemon = Daemon::start().await;
    let mut client = Client::connect(daemon.address).await;
    let own = client.0.local_addr().unwrap();
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    assert_eq!(log.take_peers(), [own.to_string()]);

    let authority = Authority::new();
    let path = authority.directory.join("http.sock");
    let _daemon = Daemon::start_on_unix(&path).await;
    let mut client = Client(UnixStream::connect(&path).await.unwrap());
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    assert_eq!(log.take_peers(), ["unix"]);

    let tls = Tls::open(authority.write_mutual_tls()).unwrap();
    let daemon = Daemon::start_with_tls(&tls, "").await;
    let config = authority.client(Some(&authority.sign("gateway")), &[]);
    let mut client = tls::connect(daemon.address, &config).await.unwrap();
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    let own = client.0.get_ref().0.local_addr().unwrap();
    assert_eq!(log.take_peers(), [format!("{own} (CN=gateway)")]);
}

#[tokio::test]
async fn an_operation_is_audited_when_its_client_disconnects() {
    let log = AuditLog::default();
    let _guard = log.subscribe();
    let daemon = Daemon::start().await;
    let body = r#"{"policy":"bucket","key":"a"}"#;
    let request = encode_request("POST", "/v1/reset", "expect: 100-continue", body);
    let mut client = daemon.send(request.strip_suffix('}').unwrap()).await;
    // 100 Continue shows that the daemon waits for the body.
    assert_eq!(client.read_response().await.unwrap().status, 100);
    drop(client);
    let mut lines = Vec::new();
    eventually("an audit line", async || {
        lines = log.take();
        !lines.is_empty()
    })
    .await;
    let lines = lines.concat();
    assert!(lines.starts_with(r#"who="loopback" verb="reset" "#), "{lines}");
    assert!(!lines.contains(r#"outcome="done""#), "{lines}");
}

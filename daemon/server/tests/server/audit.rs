//! The audit: a line for each operator's verb, and for no other.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once};

use tokio::net::UnixStream;
use tollgate_server::{Listener, Privacy, Tls};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest, set_default, set_global_default};
use tracing::{Event, Metadata, Subscriber};

use crate::access::{bearer, token};
use crate::certificates::Authority;
use crate::client::{Client, request};
use crate::daemon::{Daemon, POLICIES};
use crate::resp::Talk;
use crate::tls;

/// Keeps the lines of the audit, as `name=value` in order, and who was at the other end.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

/// Listens to nothing, and has every thread asked whether it does. One that hears of a line first
/// without anybody who listens would else turn it off for those that do.
#[derive(Debug)]
struct Nobody;

impl Lines {
    /// Listens on this thread, until what is returned is dropped.
    fn listen(&self) -> DefaultGuard {
        static ASKED: Once = Once::new();
        ASKED.call_once(|| set_global_default(Nobody).unwrap());
        set_default(self.clone())
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|x| x.text).collect()
    }

    fn take_peers(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|x| x.peer).collect()
    }
}

impl Subscriber for Lines {
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

impl Subscriber for Nobody {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Debug, Default)]
struct Line {
    text: String,
    /// Apart, for its port is another each time.
    peer: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "peer" => write!(self.peer, "{value:?}").unwrap(),
            "message" => assert_eq!(format!("{value:?}"), "audit"),
            name => write!(self.text, "{name}={value:?} ").unwrap(),
        }
    }
}

#[tokio::test]
async fn an_operator_s_verbs_are_told_and_no_others() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let daemon = Daemon::start().await;
    for (verb, body, expected) in [
        ("check", r#"{"policy":"bucket","key":"user:42"}"#, ""),
        ("inspect", r#"{"policy":"bucket","key":"user:42"}"#, ""),
        (
            "penalize",
            r#"{"policy":"bucket","key":"user:42","cost":2}"#,
            r#"who="loopback" verb="penalize" policy="bucket" key="user:42" asked="cost 2" outcome="done" changed=true granted=2 replayed=false why="" "#,
        ),
        (
            "block",
            r#"{"policy":"bucket","key":"user:42","for":"30s"}"#,
            r#"who="loopback" verb="block" policy="bucket" key="user:42" asked="for 30 s" outcome="done" changed=true granted=0 replayed=false why="" "#,
        ),
        (
            "block",
            r#"{"policy":"bucket","key_base64":"AP8K"}"#,
            r#"who="loopback" verb="block" policy="bucket" key="\\0\\xff\\n" asked="for ever" outcome="done" changed=true granted=0 replayed=false why="" "#,
        ),
        (
            "unblock",
            r#"{"policy":"bucket","key":"nobody"}"#,
            r#"who="loopback" verb="unblock" policy="bucket" key="nobody" asked="" outcome="done" changed=false granted=0 replayed=false why="" "#,
        ),
        (
            "reset",
            r#"{"policy":"buckets","key":"a"}"#,
            r#"who="loopback" verb="reset" policy="buckets" key="a" outcome="failed" why="there is no policy \"buckets\"; did you mean \"bucket\"?" "#,
        ),
        (
            "refund",
            r#"{"policy":"bucket","key":"a","cost":0}"#,
            r#"who="loopback" verb="refund" policy="bucket" key="a" asked="cost 0" outcome="failed" why=""#,
        ),
    ] {
        daemon.post(&format!("/v1/{verb}"), body).await;
        let lines = lines.take();
        assert_eq!(lines.len(), usize::from(!expected.is_empty()), "{verb}: {lines:?}");
        assert!(lines.concat().starts_with(expected), "{lines:?}\n{expected}");
    }
}

#[tokio::test]
async fn operators_who_speak_resp_are_told_of_as_well() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let daemon = Daemon::start_changed(|x| {
        x.tokens = vec![token("ops", "operate", "'*'"), token("app", "check", "'*'")];
    })
    .await;
    let mut talk = Talk::with(&daemon).await;
    for (asked, expected) in [
        (
            "DEL a b",
            r#"who="unauthenticated" verb="reset" outcome="refused" why="Authentication required"#,
        ),
        ("AUTH secret-of-app", ""),
        ("CL.THROTTLE a 1 1 1", ""),
        (
            "DEL a",
            r#"who="app" verb="reset" policy="@throttle" key="a" outcome="refused" why="reset needs the scope operate"#,
        ),
        (
            "TOLLGATE.BLOCK bucket a",
            r#"who="app" verb="block" policy="bucket" key="a" outcome="refused" why="block needs"#,
        ),
        ("AUTH secret-of-ops", ""),
        (
            "DEL a",
            r#"who="ops" verb="reset" policy="@throttle" key="a" asked="" outcome="done" changed=true granted=0 replayed=false why="" "#,
        ),
        (
            "TOLLGATE.BLOCK bucket a FOR 30000000",
            r#"who="ops" verb="block" policy="bucket" key="a" asked="for 30 s" outcome="done" changed=true granted=0 replayed=false why="" "#,
        ),
        (
            "TOLLGATE.RESET buckets a",
            r#"who="ops" verb="reset" policy="buckets" key="a" outcome="failed" why="there is no policy \"buckets\"; did you mean \"bucket\"?" "#,
        ),
        ("MULTI", ""),
        ("UNLINK a b", ""),
        (
            "EXEC",
            r#"who="ops" verb="reset" policy="@throttle" key="a" asked="" outcome="done" changed=false granted=0 replayed=false why="" who="ops" verb="reset" policy="@throttle" key="b" asked="" outcome="done""#,
        ),
    ] {
        talk.ask(asked).await;
        let lines = lines.take();
        assert_eq!(lines.is_empty(), expected.is_empty(), "{asked}: {lines:?}");
        assert!(lines.concat().starts_with(expected), "{lines:?}\n{expected}");
    }
}

#[tokio::test]
async fn what_is_refused_is_told_too_and_keys_show_as_privacy_says() {
    let lines = Lines::default();
    let _guard = lines.listen();
    for (privacy, key) in [
        (Privacy::Plain, "user:4217"),
        (Privacy::Masked, "us…(≤16)"),
        (Privacy::Hashed, "06468601ecca2006"),
    ] {
        let daemon = Daemon::start_changed(|x| {
            x.privacy = privacy;
            x.tokens = vec![token("ops", "operate", "bucket"), token("app", "check", "'*'")];
        })
        .await;
        for (header, policy, expected) in [
            (
                bearer("ops"),
                "bucket",
                format!(
                    r#"who="ops" verb="reset" policy="bucket" key="{key}" asked="" outcome="done""#
                ),
            ),
            (
                bearer("ops"),
                "log",
                format!(
                    r#"who="ops" verb="reset" policy="log" key="{key}" outcome="refused" why="the token \"ops\" is not valid for the policy \"log\""#
                ),
            ),
            (
                bearer("app"),
                "log",
                format!(
                    r#"who="app" verb="reset" policy="log" key="{key}" outcome="refused" why="reset needs the scope operate"#
                ),
            ),
            (
                String::new(),
                "log",
                r#"who="unauthenticated" verb="reset" outcome="refused" why="a token is required"#
                    .to_owned(),
            ),
        ] {
            daemon
                .post_with(
                    "/v1/reset",
                    &header,
                    &format!(r#"{{"policy":"{policy}","key":"user:4217"}}"#),
                )
                .await;
            let lines = lines.take().concat();
            assert!(lines.starts_with(&expected), "{lines}\n{expected}");
        }
    }
}

#[tokio::test]
async fn who_was_at_the_other_end_is_told() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let body = r#"{"policy":"bucket","key":"a"}"#;

    let daemon = Daemon::start().await;
    let mut client = Client::connect(daemon.address).await;
    let own = client.0.local_addr().unwrap();
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    assert_eq!(lines.take_peers(), [own.to_string()]);

    let authority = Authority::new();
    let path = authority.directory.join("http.sock");
    let listener = Listener::bind_unix(&path).await.unwrap();
    let _daemon = Daemon::start_at(POLICIES, |_| listener).await;
    let mut client = Client(UnixStream::connect(&path).await.unwrap());
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    assert_eq!(lines.take_peers(), ["unix"]);

    let mut files = authority.write_pair(&authority.sign("daemon"));
    files.client_ca = Some(authority.write("ca.pem", &authority.pem));
    let tls = Tls::open(files).unwrap();
    let daemon = Daemon::start_at(POLICIES, |http| http.with_tls(Some(tls))).await;
    let config = authority.client(Some(&authority.sign("gateway")), &[]);
    let mut client = tls::connect(daemon.address, &config).await.unwrap();
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    let own = client.0.get_ref().0.local_addr().unwrap();
    assert_eq!(lines.take_peers(), [format!("{own} (CN=gateway)")]);
}

#[tokio::test]
async fn a_peer_that_leaves_does_not_escape() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let asked = request("POST", "/v1/reset", r#"{"policy":"bucket","key":"a"}"#);
    let asked = asked.replacen("\r\n", "\r\nexpect: 100-continue\r\n", 1);
    client.send(asked.strip_suffix('}').unwrap()).await.unwrap();
    // It is said when the body is first waited for: until then there is nothing to tell.
    assert_eq!(client.answer().await.unwrap().status, 100);
    drop(client);
    let mut told = Vec::new();
    tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while told.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            told = lines.take();
        }
    })
    .await
    .unwrap();
    assert!(told.concat().starts_with(r#"who="loopback" verb="reset" "#), "{told:?}");
    assert!(!told.concat().contains(r#"outcome="done""#), "{told:?}");
}

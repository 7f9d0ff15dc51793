//! Tokens: who may do what.

use super::Talk;
use crate::access;
use crate::daemon::Daemon;

const ID: &str = "0000000000000000000000000000000a";

#[tokio::test]
async fn a_token_is_needed_and_may_what_its_scopes_say() {
    let daemon = access::start().await;
    let lease = |verb: &str| format!("TOLLGATE.{verb} slots a LEASE {ID}");
    for (asked, tokens) in [
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
        let mut talk = Talk::with(&daemon).await;
        assert!(talk.ask(asked).await.starts_with("-NOAUTH "), "{asked}");
        for name in ["check", "read", "operate", "admin"] {
            assert_eq!(talk.ask(&format!("AUTH secret-of-{name}")).await, "+OK");
            let said = talk.ask(asked).await;
            let may = tokens.split(' ').any(|part| part == name);
            assert_eq!(said.starts_with("-NOPERM "), !may, "{asked} {name}: {said}");
            assert!(may || said.contains(&format!("\"{name}\"")), "{said}");
        }
    }
}

#[tokio::test]
async fn a_token_is_for_its_policies() {
    let daemon = access::start().await;
    let mut talk = Talk::with(&daemon).await;
    assert_eq!(talk.ask("AUTH narrow secret-of-narrow").await, "+OK");
    for (asked, may) in [
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
        let said = talk.ask(asked).await;
        assert_eq!(
            !said.starts_with("-NOPERM the token \"narrow\" is not valid for"),
            may,
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_token_is_shown_in_any_of_the_ways_that_clients_have() {
    let daemon = access::start().await;
    for (asked, expected) in [
        ("AUTH secret-of-check", "+OK"),
        ("AUTH check secret-of-check", "+OK"),
        ("AUTH default secret-of-check", "+OK"),
        ("HELLO 3 AUTH check secret-of-check", "%7"),
        ("HELLO 2 AUTH default secret-of-check SETNAME x", "*14"),
        ("AUTH read secret-of-check", "-WRONGPASS"),
        ("AUTH secret-of-nobody", "-WRONGPASS"),
        ("HELLO 3 AUTH check secret-of-nobody", "-WRONGPASS"),
        ("HELLO 3", "-NOAUTH"),
        ("NOTHING", "-NOAUTH"),
        ("QUIT", "+OK"),
    ] {
        let mut talk = Talk::with(&daemon).await;
        let said = talk.ask(asked).await;
        assert!(said.starts_with(expected), "{asked}: {said}");
        assert!(!said.contains("secret-of"), "{said}");
        if asked != "QUIT" {
            let may = !expected.starts_with('-');
            assert_eq!(talk.ask("PING").await == "+PONG", may, "{asked}");
            assert_eq!(talk.ask("RESET").await, "+RESET");
            assert!(talk.ask("PING").await.starts_with("-NOAUTH"), "{asked}");
        }
    }
}

#[tokio::test]
async fn a_stranger_sends_little() {
    let daemon = access::start().await;
    for sent in ["*11\r\n", "*1\r\n$16385\r\n"] {
        let mut talk = Talk::with(&daemon).await;
        talk.send(sent.as_bytes()).await;
        let said = talk.closed().await;
        assert!(said.starts_with("-ERR Protocol error: invalid "), "{said}");
        let mut talk = Talk::with(&daemon).await;
        assert_eq!(talk.ask("AUTH secret-of-check").await, "+OK");
        talk.send(sent.as_bytes()).await;
        assert_eq!(Talk::with(&daemon).await.ask("RESET").await, "+RESET");
    }
}

#[tokio::test]
async fn a_transaction_is_done_by_who_sends_it() {
    let daemon: Daemon = access::start().await;
    let mut talk = Talk::with(&daemon).await;
    for (asked, expected) in [
        ("MULTI", "-NOAUTH"),
        ("AUTH secret-of-check", "+OK"),
        ("MULTI", "+OK"),
        ("DEL a", "+QUEUED"),
        ("AUTH secret-of-admin", "+QUEUED"),
        ("DEL a", "+QUEUED"),
        ("EXEC", "*3 -NOPERM"),
    ] {
        let said = talk.ask(asked).await;
        assert!(said.starts_with(expected), "{asked}: {said}");
        assert!(asked != "EXEC" || said.ends_with("+OK :0"), "{said}");
    }
}

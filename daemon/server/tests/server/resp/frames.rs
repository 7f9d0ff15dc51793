//! Frames, wherever they are split.

use super::{Talk, command, words};
use crate::daemon::{Daemon, POLICIES};

/// What is sent, and what is answered to all of it.
fn rows() -> Vec<(Vec<u8>, &'static str)> {
    let row = |sent: &[u8], answered| (sent.to_vec(), answered);
    vec![
        row(b"*1\r\n$4\r\nPING\r\n", "+PONG\r\n"),
        row(b"PING\r\n", "+PONG\r\n"),
        row(b"ping\n", "+PONG\r\n"),
        row(b"\r\n\r\n*0\r\n*-1\r\n  \r\nPING\r\n", "+PONG\r\n"),
        row(b"*2\r\n$4\r\necho\r\n$0\r\n\r\n", "$0\r\n\r\n"),
        row(b"*2\r\n$4\r\nECHO\r\n$6\r\na\r\nb\0\xff\r\n", "$6\r\na\r\nb\0\u{ff}\r\n"),
        row(b"*02\r\n$04\r\nECHO\r\n$01\r\na\r\n", "$1\r\na\r\n"),
        row(b"ECHO  \"a \\x41\\n\\\"'\"\t\r\n", "$6\r\na A\n\"'\r\n"),
        row(b"ECHO 'it\\'s \\n'\r\n", "$7\r\nit's \\n\r\n"),
        row(b"ECHO a\"b c\"\r\n", "$4\r\nab c\r\n"),
        row(b"PING\r\nPING a\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n$1\r\na\r\n+PONG\r\n"),
        row(
            b"NONESUCH SUCH thing\r\nPING\r\n",
            "-ERR unknown command 'NONESUCH', with args beginning with: 'SUCH' 'thing' ; COMMAND LIST \
             returns all names\r\n+PONG\r\n",
        ),
        row(
            b"CL.THROTLE k\r\n",
            "-ERR unknown command 'CL.THROTLE', with args beginning with: 'k' ; did you mean \
             \"cl.throttle\"?\r\n",
        ),
    ]
}

/// What ends the connection, and the last that is said.
const BROKEN: &[(&str, &str)] = &[
    ("*x\r\n", "invalid multibulk length"),
    ("*\r\n", "invalid multibulk length"),
    ("*1\rx", "invalid multibulk length"),
    ("*+1\r\n", "invalid multibulk length"),
    ("*1025\r\n", "invalid multibulk length 1025; the maximum is 1024"),
    ("*99999999999999999999\r\n", "invalid multibulk length"),
    ("*1\r\n+PING\r\n", "expected '$', got '+'"),
    ("*1\r\n\r\n", "expected '$', got '\\r'"),
    ("*1\r\n$-1\r\n", "invalid bulk length"),
    ("*1\r\n$99999999999\r\n", "invalid bulk length 99999999999; the maximum is 65536"),
    ("*1\r\n$4\r\nPINGPING", "expected the end of an argument"),
    ("*1\r\n$4\r\nPING\n\n", "expected the end of an argument"),
    ("ECHO \"a\r\n", "unbalanced quotes in request"),
    ("ECHO 'a'b\r\n", "unbalanced quotes in request"),
    ("*111111111111111111111111111111111111", "too big mbulk count string"),
    ("*1\r\n$111111111111111111111111111111111111", "too big bulk count string"),
];

#[tokio::test]
async fn what_is_answered_does_not_depend_on_where_it_is_split() {
    let daemon = Daemon::start().await;
    for (sent, answered) in rows() {
        let answered: Vec<u8> = answered.chars().map(|c| u8::try_from(c).unwrap()).collect();
        let mut talk = Talk::with(&daemon).await;
        talk.send(&sent).await;
        talk.expect(&answered).await;
        for at in 1..sent.len() {
            let (first, second) = sent.split_at(at);
            talk.send(first).await;
            tokio::task::yield_now().await;
            talk.send(second).await;
            talk.expect(&answered).await;
        }
        for byte in &sent {
            talk.send(&[*byte]).await;
            tokio::task::yield_now().await;
        }
        talk.expect(&answered).await;
    }
}

#[tokio::test]
async fn what_is_no_frame_is_told_and_ends_the_connection() {
    let daemon = Daemon::start().await;
    for (sent, said) in BROKEN {
        let expected = format!("+PONG\\r\\n-ERR Protocol error: {}\\r\\n", said.escape_default());
        for one_by_one in [false, true] {
            let mut talk = Talk::with(&daemon).await;
            let sent = format!("PING\r\n{sent}");
            if one_by_one {
                for byte in sent.as_bytes() {
                    talk.send(&[*byte]).await;
                    tokio::task::yield_now().await;
                }
            } else {
                talk.send(sent.as_bytes()).await;
            }
            assert_eq!(talk.closed().await, expected, "{sent:?}");
        }
    }
}

#[tokio::test]
async fn http_is_told_that_it_is_wrong_here() {
    let daemon = Daemon::start().await;
    for sent in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"] {
        let mut talk = Talk::with(&daemon).await;
        talk.send(format!("{sent}\r\nCL.THROTTLE k 1 1 1\r\n").as_bytes()).await;
        let said = talk.closed().await;
        assert!(said.ends_with("this is HTTP; send it to listen.http\\r\\n"), "{said}");
        assert!(!said.contains("*5"), "{said}");
    }
}

#[tokio::test]
async fn a_large_frame_may_come_byte_by_byte() {
    const LARGE: usize = 1024 * 1024;
    let daemon = Daemon::start_with(&format!("limits: {{ body: 2MiB }}\n{POLICIES}")).await;
    let mut talk = Talk::with(&daemon).await;
    let large = vec![b'x'; LARGE];
    let sent = command(&[b"ECHO", &large]);
    // As few bytes at a time as a test has time for; that nothing is read twice the parser's own
    // tests say.
    for part in sent.chunks(61) {
        talk.send(part).await;
    }
    talk.expect(format!("${LARGE}\r\n").as_bytes()).await;
    talk.expect(&large).await;
    talk.expect(b"\r\n").await;
    assert_eq!(talk.ask("PING").await, "+PONG");
}

#[tokio::test]
async fn a_long_key_is_refused_and_the_connection_goes_on() {
    let daemon = Daemon::start_with(&format!("limits: {{ key_bytes: 16 }}\n{POLICIES}")).await;
    let mut talk = Talk::with(&daemon).await;
    let key = "k".repeat(17);
    for asked in [
        format!("CL.THROTTLE {key} 1 1 1"),
        format!("TOLLGATE.CHECK bucket {key}"),
        format!("DEL a {key}"),
    ] {
        let said = talk.ask(&asked).await;
        assert_eq!(said, "-ERR key has 17 bytes, more than the maximum of 16; send a hash");
    }
    assert_eq!(talk.ask(&format!("CL.THROTTLE {} 1 1 1", &key[1..])).await, "*5 :0 :2 :1 :-1 :1");
}

#[tokio::test]
async fn a_command_is_at_most_so_many_bytes_together() {
    let daemon = Daemon::start_with(&format!("limits: {{ body: 1KiB }}\n{POLICIES}")).await;
    let mut talk = Talk::with(&daemon).await;
    let part = "x".repeat(1_024);
    let many = vec![&*part; 17].join(" ");
    talk.send(&words(&many)).await;
    let said = talk.closed().await;
    assert!(said.contains("too big a command; the maximum is 16384 bytes"), "{said}");
}

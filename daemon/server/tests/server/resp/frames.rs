//! Frames, split at any position.

use super::{RespClient, encode, encode_words};
use crate::support::daemon::Daemon;

/// Bytes, and the replies to all of them.
fn rows() -> Vec<(Vec<u8>, &'static str)> {
    let row = |sent: &[u8], replies| (sent.to_vec(), replies);
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
            "-ERR unknown command 'NONESUCH', with args beginning with: 'SUCH' 'thing' ; this is \
             tollgate, not Redis; COMMAND LIST returns its commands\r\n+PONG\r\n",
        ),
        row(
            b"INCR k\r\n",
            "-ERR unknown command 'INCR', with args beginning with: 'k' ; this is tollgate, not \
             Redis; COMMAND LIST returns its commands\r\n",
        ),
        row(
            b"CL.THROTLE k\r\n",
            "-ERR unknown command 'CL.THROTLE', with args beginning with: 'k' ; did you mean \
             \"cl.throttle\"?\r\n",
        ),
    ]
}

/// Malformed frames, and the errors that close the connection.
const MALFORMED: &[(&str, &str)] = &[
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

async fn send_bytewise(client: &mut RespClient, bytes: &[u8]) {
    for byte in bytes {
        client.send(&[*byte]).await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn replies_do_not_depend_on_how_frames_are_split() {
    let daemon = Daemon::start().await;
    for (sent, replies) in rows() {
        let replies: Vec<u8> = replies.chars().map(|c| u8::try_from(c).unwrap()).collect();
        let mut client = RespClient::connect(&daemon).await;
        client.send(&sent).await;
        client.expect(&replies).await;
        for at in 1..sent.len() {
            let (first, second) = sent.split_at(at);
            client.send(first).await;
            tokio::task::yield_now().await;
            client.send(second).await;
            client.expect(&replies).await;
        }
        send_bytewise(&mut client, &sent).await;
        client.expect(&replies).await;
    }
}

#[tokio::test]
async fn malformed_frames_get_an_error_and_close_the_connection() {
    let daemon = Daemon::start().await;
    for (sent, error) in MALFORMED {
        let expected = format!("+PONG\\r\\n-ERR Protocol error: {}\\r\\n", error.escape_default());
        for one_by_one in [false, true] {
            let mut client = RespClient::connect(&daemon).await;
            let sent = format!("PING\r\n{sent}");
            if one_by_one {
                send_bytewise(&mut client, sent.as_bytes()).await;
            } else {
                client.send(sent.as_bytes()).await;
            }
            assert_eq!(client.read_until_closed().await, expected, "{sent:?}");
        }
    }
}

#[tokio::test]
async fn http_requests_get_an_error() {
    let daemon = Daemon::start().await;
    for sent in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"] {
        let mut client = RespClient::connect(&daemon).await;
        client.send(format!("{sent}\r\nCL.THROTTLE k 1 1 1\r\n").as_bytes()).await;
        let reply = client.read_until_closed().await;
        assert!(reply.ends_with("this is HTTP; send it to listen.http\\r\\n"), "{reply}");
        assert!(!reply.contains("*5"), "{reply}");
    }
}

#[tokio::test]
async fn large_frames_may_arrive_in_small_parts() {
    const LARGE: usize = 1024 * 1024;
    let daemon = Daemon::start_with_limits("body: 2MiB").await;
    let mut client = RespClient::connect(&daemon).await;
    let large = vec![b'x'; LARGE];
    let sent = encode(&[b"ECHO", &large]);
    // Small parts, but few enough for a quick test. The parser has its own tests for single bytes.
    for part in sent.chunks(61) {
        client.send(part).await;
    }
    client.expect(format!("${LARGE}\r\n").as_bytes()).await;
    client.expect(&large).await;
    client.expect(b"\r\n").await;
    assert_eq!(client.call("PING").await, "+PONG");
}

#[tokio::test]
async fn long_keys_are_rejected_and_the_connection_stays_open() {
    let daemon = Daemon::start_with_limits("key_bytes: 16").await;
    let mut client = RespClient::connect(&daemon).await;
    let key = "k".repeat(17);
    for command in [
        format!("CL.THROTTLE {key} 1 1 1"),
        format!("TOLLGATE.CHECK bucket {key}"),
        format!("DEL a {key}"),
    ] {
        let reply = client.call(&command).await;
        assert_eq!(reply, "-ERR key has 17 bytes, more than the maximum of 16; send a hash");
    }
    let reply = client.call(&format!("CL.THROTTLE {} 1 1 1", &key[1..])).await;
    assert_eq!(reply, "*5 :0 :2 :1 :-1 :1");
}

#[tokio::test]
async fn commands_over_the_size_limit_close_the_connection() {
    let daemon = Daemon::start_with_limits("body: 1KiB").await;
    let mut client = RespClient::connect(&daemon).await;
    let part = "x".repeat(1_024);
    let many = vec![&*part; 17].join(" ");
    client.send(&encode_words(&many)).await;
    let reply = client.read_until_closed().await;
    assert!(reply.contains("too big a command; the maximum is 16384 bytes"), "{reply}");
}

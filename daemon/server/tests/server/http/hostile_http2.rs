//! Hostile HTTP/2 clients, frame by frame.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::bystanders::while_others_are_served;
use crate::support::client::Client;
use crate::support::daemon::Daemon;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM_AND_HEADERS: u8 = 5;
/// The error code for excessive load.
const ENHANCE_YOUR_CALM: u32 = 11;
/// The headers of `GET /` at `http://t`, in HPACK.
const REQUEST: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b't'];

/// Encodes a frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Sends the preface, then `attack` repeatedly until the daemon closes the connection. Returns the
/// error code of its GOAWAY frame, if it sent one.
async fn attack_until_closed(client: Client, mut attack: impl FnMut() -> Vec<u8>) -> Option<u32> {
    let (mut reader, mut writer) = client.0.into_split();
    let attacking = tokio::spawn({
        let mut begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        let rounds: Vec<_> = (0..64).map(|_| attack()).collect();
        async move {
            for round in std::iter::once(std::mem::take(&mut begin)).chain(rounds) {
                if writer.write_all(&round).await.is_err() {
                    return true;
                }
            }
            // Otherwise a connection that is still open would wait forever.
            writer.shutdown().await.is_err()
        }
    });
    let mut code = None;
    let mut head = [0; 9];
    while reader.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        if reader.read_exact(&mut payload).await.is_err() {
            break;
        }
        if head[3] == GOAWAY {
            code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    attacking.await.unwrap();
    code
}

#[tokio::test]
async fn rapid_resets_close_the_connection() {
    let daemon = Daemon::start().await;
    while_others_are_served(&daemon, async || {
        let mut stream = 1;
        let code = attack_until_closed(daemon.connect().await, || {
            let mut round = Vec::new();
            for _ in 0..200 {
                round.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST));
                round.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
                stream += 2;
            }
            round
        });
        assert_eq!(code.await, Some(ENHANCE_YOUR_CALM));
    })
    .await;
}

#[tokio::test]
async fn endless_continuation_frames_close_the_connection() {
    let daemon = Daemon::start().await;
    while_others_are_served(&daemon, async || {
        let mut is_begun = false;
        let code = attack_until_closed(daemon.connect().await, || {
            let mut round = Vec::new();
            if !std::mem::replace(&mut is_begun, true) {
                round.extend(frame(HEADERS, 0, 1, REQUEST));
            }
            for _ in 0..100 {
                round.extend(frame(CONTINUATION, 0, 1, &[]));
            }
            round
        });
        assert_eq!(code.await, Some(ENHANCE_YOUR_CALM));
    })
    .await;
}

#[tokio::test]
async fn ping_floods_do_not_delay_other_clients() {
    let daemon = Daemon::start().await;
    while_others_are_served(&daemon, async || {
        attack_until_closed(daemon.connect().await, || frame(PING, 0, 0, &[7; 8]).repeat(1_000))
            .await;
    })
    .await;
}

//! Replies of every kind, whole, cut, and damaged.

use proptest::prelude::*;
use tollgate::Id;

use super::{Http, Resp, Wire};
use crate::answer::{Answer, ErrorKind, Reply};
use crate::keys::Keys;
use crate::plan::{Command, LimitedBy, Peer, Question};

fn wires() -> Vec<(Wire, String)> {
    let peer =
        Peer { host: "h".into(), port: 1, user: Some("u".into()), password: Some("p".into()) };
    let question = Question { limited_by: LimitedBy::Limits("10/s burst 20".into()), cost: 2 };
    let keys = Keys { prefix: "k".into(), count: 10, zipf: None, seed: 1 };
    let resp = |command| Wire::Resp(Resp::new(&peer, command, &question, &keys, false));
    let json =
        r#"{"allowed":true,"reason":"limit","time":7.5,"delay":0.25,"limits":[{"limit":"10/s"}]}"#;
    let http = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{json}", json.len());
    let map = "*12\r\n$7\r\nallowed\r\n:1\r\n$6\r\nreason\r\n$5\r\nlimit\r\n$8\r\ndegraded\r\n:0\r\n\
               $7\r\ntime_us\r\n:7500000\r\n$8\r\ndelay_us\r\n:250000\r\n$6\r\nlimits\r\n*1\r\n*4\r\n\
               $5\r\nlimit\r\n$4\r\n10/s\r\n$4\r\nmore\r\n*2\r\n:1\r\n$-1\r\n";
    vec![
        (Wire::Http(Http::new(&peer, &question, &keys, false)), http),
        (resp(Command::Check), map.into()),
        (resp(Command::Throttle), "*5\r\n:0\r\n:20\r\n:19\r\n:-1\r\n:1\r\n".into()),
        (resp(Command::Counter { threshold: 3 }), ":3\r\n:1\r\n".into()),
    ]
}

#[test]
fn a_reply_is_read_once_it_is_there_whole() {
    for (wire, reply) in wires() {
        for cut in 0..reply.len() {
            assert_eq!(wire.read(&reply.as_bytes()[..cut]), Ok(None), "{cut} bytes of {reply}");
        }
        let taken = wire.read(reply.repeat(2).as_bytes()).unwrap().unwrap();
        assert_eq!((taken.length, taken.is_last), (reply.len(), false));
        let Reply::Answer(answer) = taken.reply else { panic!("{taken:?}") };
        assert!(answer.allowed && answer.by_limits && !answer.degraded, "{answer:?}");
        if !wire.limits(reply.as_bytes()).is_empty() {
            assert_eq!(wire.limits(reply.as_bytes()), ["10/s"]);
            assert_eq!((answer.time, answer.delay), (Some(7_500_000), 250_000));
        }
    }
}

#[test]
fn refusals_are_told_apart() {
    let check = |wire: &Wire, reply: &str, expected: Reply| {
        assert_eq!(wire.read(reply.as_bytes()).unwrap().unwrap().reply, expected, "{reply}");
    };
    let wires: Vec<Wire> = wires().into_iter().map(|wire| wire.0).collect();
    let refused = |kind, words: &str| Reply::Error(kind, words.to_owned());
    for wire in &wires[1..3] {
        check(wire, "-ERR no\r\n", refused(ErrorKind::Rejected, "ERR no"));
        check(wire, "-TRYAGAIN\r\n", refused(ErrorKind::Unavailable, "TRYAGAIN"));
        assert!(wire.read(b"+OK\r\n").is_err() && wire.read(b"HTTP/1.1 400\r\n").is_err());
    }
    check(&wires[2], "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n", Reply::Answer(Answer::plain(false)));
    check(&wires[3], ":4\r\n:1\r\n", Reply::Answer(Answer::plain(false)));
    let replica = "-READONLY a replica\r\n".repeat(2);
    check(&wires[3], &replica, refused(ErrorKind::Rejected, "READONLY a replica"));
}

#[test]
fn requests_are_what_they_should_be() {
    let expected = [
        "{\"limit\":\"10/s burst 20\",\"key\":\"k7\",\"cost\":2}",
        "*6\r\n$14\r\nTOLLGATE.CHECK\r\n$5\r\nLIMIT\r\n$13\r\n10/s burst 20\r\n$2\r\nk7\r\n\
         $4\r\nCOST\r\n$1\r\n2\r\n",
        "*6\r\n$11\r\nCL.THROTTLE\r\n$2\r\nk7\r\n$2\r\n19\r\n$2\r\n10\r\n$1\r\n1\r\n$1\r\n2\r\n",
        "*2\r\n$4\r\nINCR\r\n$12\r\nk7:000000005\r\n\
         *3\r\n$6\r\nEXPIRE\r\n$12\r\nk7:000000005\r\n$2\r\n60\r\n",
    ];
    for ((wire, _), expected) in wires().into_iter().zip(expected) {
        let mut out = Vec::new();
        wire.ask(7, 5 * 60_000_000 + 1, Id::from_u128(0), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with(expected), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_reply_or_none(
        noise in prop::collection::vec(any::<u8>(), 0..80),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        for (wire, reply) in wires() {
            let mut damaged = reply.into_bytes();
            for (index, byte) in &damage {
                let at = index.index(damaged.len());
                damaged[at] = *byte;
            }
            for input in [&noise, &damaged] {
                if let Ok(Some(taken)) = wire.read(input) {
                    prop_assert!(taken.length <= input.len());
                }
                let _ = wire.limits(input);
            }
        }
    }
}

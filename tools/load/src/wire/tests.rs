//! Complete, truncated and damaged replies of every protocol.

use proptest::prelude::*;
use tollgate::Id;

use super::Wire;
use crate::keys::Keys;
use crate::plan::{CheckSpec, Command, Endpoint, LimitedBy};
use crate::reply::{Decision, ErrorKind, Reply, RequestError};

fn wires() -> Vec<(Wire, String)> {
    let endpoint =
        Endpoint { host: "h".into(), port: 1, user: Some("u".into()), password: Some("p".into()) };
    let check = CheckSpec { limited_by: LimitedBy::Limits("10/s burst 20".into()), cost: 2 };
    let keys = Keys { prefix: "k".into(), count: 10, zipf: None, seed: 1 };
    let resp = |command| Wire::resp(&endpoint, command, &check, &keys, false).unwrap();
    let json =
        r#"{"allowed":true,"reason":"ok","time":7.5,"delay":0.25,"limits":[{"limit":"10/s"}]}"#;
    let http = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{json}", json.len());
    let map = "*12\r\n$7\r\nallowed\r\n:1\r\n$6\r\nreason\r\n$5\r\nlimit\r\n$8\r\ndegraded\r\n:0\r\n\
               $7\r\ntime_us\r\n:7500000\r\n$8\r\ndelay_us\r\n:250000\r\n$6\r\nlimits\r\n*1\r\n*4\r\n\
               $5\r\nlimit\r\n$4\r\n10/s\r\n$4\r\nmore\r\n*2\r\n:1\r\n$-1\r\n";
    vec![
        (Wire::http(&endpoint, &check, &keys, false), http),
        (resp(Command::Check), map.into()),
        (resp(Command::Throttle), "*5\r\n:0\r\n:20\r\n:19\r\n:-1\r\n:1\r\n".into()),
        (resp(Command::Counter { threshold: 3 }), ":3\r\n:1\r\n".into()),
    ]
}

#[test]
fn a_reply_is_parsed_once_it_is_complete() {
    for (wire, reply) in wires() {
        for cut in 0..reply.len() {
            assert_eq!(wire.parse(&reply.as_bytes()[..cut]), Ok(None), "{cut} bytes of {reply}");
        }
        let parsed = wire.parse(reply.repeat(2).as_bytes()).unwrap().unwrap();
        assert_eq!((parsed.length, parsed.is_last), (reply.len(), false));
        let Reply::Decision(decision) = parsed.reply else { panic!("{parsed:?}") };
        assert!(decision.allowed && decision.by_limits && !decision.degraded, "{decision:?}");
        if !wire.limits(reply.as_bytes()).is_empty() {
            assert_eq!(wire.limits(reply.as_bytes()), ["10/s"]);
            assert_eq!((decision.time, decision.delay), (Some(7_500_000), 250_000));
        }
    }
}

#[test]
fn errors_are_classified() {
    let check = |wire: &Wire, reply: &str, expected: Reply| {
        assert_eq!(wire.parse(reply.as_bytes()).unwrap().unwrap().reply, expected, "{reply}");
    };
    let wires: Vec<Wire> = wires().into_iter().map(|wire| wire.0).collect();
    let error = |kind, message: &str| Reply::Error(RequestError::new(kind, message));
    for wire in &wires[1..3] {
        check(wire, "-ERR no\r\n", error(ErrorKind::Rejected, "ERR no"));
        check(wire, "-TRYAGAIN\r\n", error(ErrorKind::Unavailable, "TRYAGAIN"));
        assert!(wire.parse(b"+OK\r\n").is_err() && wire.parse(b"HTTP/1.1 400\r\n").is_err());
    }
    check(
        &wires[2],
        "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n",
        Reply::Decision(Decision::from_allowed(false)),
    );
    check(&wires[3], ":4\r\n:1\r\n", Reply::Decision(Decision::from_allowed(false)));
    let replica = "-READONLY a replica\r\n".repeat(2);
    check(&wires[3], &replica, error(ErrorKind::Rejected, "READONLY a replica"));
}

#[test]
fn requests_are_encoded_exactly() {
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
        wire.write_check(7, 5 * 60_000_000 + 1, Id::from_u128(0), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with(expected), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn arbitrary_bytes_never_panic(
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
                if let Ok(Some(parsed)) = wire.parse(input) {
                    prop_assert!(parsed.length <= input.len());
                }
                let _ = wire.limits(input);
            }
        }
    }
}

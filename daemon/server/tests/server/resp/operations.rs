//! Every operation, compared with the response to the same request over HTTP.

use serde_json::Value as Json;
use tollgate::Micros;

use super::{RespClient, Value, check_rows, encode};
use crate::support::ID;
use crate::support::daemon::Daemon;

/// Commands and the same requests over HTTP: the fields besides policy and key, or a whole body.
/// `+` advances the clock.
const ROWS: &str = r#"
CHECK bucket a
CHECK bucket a COST 2 | "cost":2
CHECK bucket a COST 3 | "cost":3
check bucket a cost 0 note x | "cost":0
PEEK bucket a COST 2 | "cost":2
CHECK pair a
CHECK pair a COST 2 | "cost":2
CHECK ghost a
CHECK ghost a
CHECK listed root
CHECK listed eve
CHECK LIMIT 1/min a | {"limit":"1/min","key":"a"}
CHECK limit 1/min a | {"limit":"1/min","key":"a"}
CHECK bucket b AND pair b COST 2 NOTE y | {"checks":[{"policy":"bucket","key":"b"},{"policy":"pair","key":"b","cost":2}]}
PEEK bucket b AND LIMIT 1/min b | {"checks":[{"policy":"bucket","key":"b"},{"limit":"1/min","key":"b"}]}
CHECK log r ID one | "request_id":"one"
CHECK log r ID one | "request_id":"one"
CHECK log s ID two COST 2 | "request_id":"two","cost":2
SETTLE log s ID two COST 1 | "request_id":"two","cost":1
SETTLE log s ID two COST 1 | "request_id":"two","cost":1
CHECK bucket s ID three COST 2 AND log t | {"checks":[{"policy":"bucket","key":"s","cost":2},{"policy":"log","key":"t"}],"request_id":"three"}
SETTLE bucket s ID three COST 0 AND log t COST 3 | {"checks":[{"policy":"bucket","key":"s","cost":0},{"policy":"log","key":"t","cost":3}],"request_id":"three"}
TAKE bucket c COST 5 | "cost":5
TAKE bucket c COST 5 | "cost":5
RESERVE queue a RESERVATION A | "reservation_id":"A"
RESERVE queue a RESERVATION B MAXWAIT 1000000 | "reservation_id":"B","max_wait":1
RESERVE queue a RESERVATION B MAXWAIT 999999 | "reservation_id":"B","max_wait":0.999999
INSPECT queue a
CANCEL queue a RESERVATION B | "reservation_id":"B"
CANCEL queue a RESERVATION B | "reservation_id":"B"
PENALIZE bucket a COST 3 | "cost":3
REFUND bucket a COST 1 | "cost":1
REFUND pair a TIME 1763650000000000 | "time":1763650000
+
INSPECT bucket a
RESET bucket a
RESET bucket a
BLOCK bucket a FOR 1500000 | "for":1.5
BLOCK bucket a FOR 1h | "for":3600
CHECK bucket a
INSPECT bucket a
BLOCK bucket a
CHECK bucket a
INSPECT bucket a
UNBLOCK bucket a
ACQUIRE slots a LEASE A | "lease_id":"A"
CHECK slots a LEASE B | "lease_id":"B"
INSPECT slots a
+
RENEW slots a LEASE A | "lease_id":"A"
RELEASE slots a LEASE B | "lease_id":"B"
RELEASE slots a LEASE B | "lease_id":"B"
"#;

#[tokio::test]
async fn operations_reply_as_over_http_in_both_protocol_versions() {
    let (three, two, http) = (Daemon::start().await, Daemon::start().await, Daemon::start().await);
    let mut resp3 = RespClient::connect(&three).await;
    let mut resp2 = RespClient::connect(&two).await;
    assert!(resp3.call("HELLO 3").await.starts_with("%7"));
    let other = ID.replace('a', "b");
    let rows: Vec<_> = ROWS.trim().lines().collect();
    assert_eq!(rows.len(), 52);
    for row in rows {
        if row == "+" {
            for daemon in [&three, &two, &http] {
                daemon.clock.advance(Micros::new(300_123));
            }
            continue;
        }
        let (command, fields) = row.split_once(" | ").unwrap_or((row, ""));
        let words: Vec<_> = command.split(' ').collect();
        let separator = if fields.is_empty() { "" } else { "," };
        let body = match fields {
            body if body.starts_with('{') => body.to_owned(),
            _ => format!(r#"{{"policy":"{}","key":"{}"{separator}{fields}}}"#, words[1], words[2]),
        };
        let body = body.replace(r#""A""#, &format!("\"{ID}\""));
        let body = body.replace(r#""B""#, &format!("\"{other}\""));
        let operation = words[0].to_lowercase();
        let command = words.iter().map(|word| match *word {
            "A" => ID,
            "B" => &other,
            word => word,
        });
        let command = format!("TOLLGATE.{}", command.collect::<Vec<_>>().join(" "));
        let reply = resp3.call_value(&command).await;
        assert_eq!(resp2.call_value(&command).await, reply.to_resp2(), "{command}");
        let response = http.post(&format!("/v1/{operation}?status=200"), &body).await;
        response.assert(200, "", &body);
        let json: Json = serde_json::from_str(&response.body).unwrap();
        assert_same(&command, "", &reply, &json);
    }
}

/// Compares a reply with JSON. The names of times end in `_us`, and −1 and −2 mean null.
fn assert_same(command: &str, name: &str, reply: &Value, json: &Json) {
    let difference = || format!("{command}: {name} is {reply:?}, and in JSON {json}");
    match (reply, json) {
        (Value::Map(reply), Json::Object(json)) => {
            assert_eq!(reply.len(), json.len(), "{}", difference());
            for (name, value) in reply {
                let Value::Text(name) = name else { panic!("{}", difference()) };
                let field = name.strip_suffix("_us").unwrap_or(name);
                let other = json.get(field).unwrap_or_else(|| panic!("{name}: {}", difference()));
                assert_same(command, name, value, other);
            }
        }
        (Value::List(reply), Json::Array(json)) => {
            assert_eq!(reply.len(), json.len(), "{}", difference());
            for (reply, json) in reply.iter().zip(json) {
                assert_same(command, name, reply, json);
            }
        }
        (Value::Int(-1 | -2), Json::Null) if name.ends_with("_us") => {}
        (Value::Int(micros), Json::Number(seconds)) if name.ends_with("_us") => {
            assert_eq!(Some(*micros), parse_micros(&seconds.to_string()), "{}", difference());
        }
        (Value::Int(reply), Json::Number(json)) => {
            assert_eq!(Some(*reply), json.as_i64(), "{}", difference());
        }
        (Value::Bool(reply), Json::Bool(json)) => assert_eq!(reply, json, "{}", difference()),
        (Value::Text(reply), Json::String(json)) => assert_eq!(reply, json, "{}", difference()),
        (Value::Null, Json::Null) => {}
        _ => panic!("{}", difference()),
    }
}

/// Parses seconds as microseconds.
fn parse_micros(seconds: &str) -> Option<i64> {
    let (whole, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    format!("{whole}{decimals:0<6}").parse().ok()
}

#[tokio::test]
async fn omitted_ids_are_generated() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    assert!(client.call("HELLO 3").await.starts_with("%7"));
    for (take, give_back, name, keyword) in [
        ("CHECK slots", "RELEASE slots", "lease_id", "LEASE"),
        ("ACQUIRE slots", "RELEASE slots", "lease_id", "LEASE"),
        ("RESERVE queue", "CANCEL queue", "reservation_id", "RESERVATION"),
    ] {
        // A reservation without a wait cannot be cancelled, so another one precedes it.
        client.call(&format!("TOLLGATE.{take} k")).await;
        let reply = client.call_value(&format!("TOLLGATE.{take} k")).await;
        let Value::Text(id) = reply.get(name) else { panic!("{reply:?}") };
        let reply = client.call_value(&format!("TOLLGATE.{give_back} k {keyword} {id}")).await;
        assert_eq!(reply.get("changed"), &Value::Bool(true), "{reply:?}");
        client.call("TOLLGATE.RESET slots k").await;
    }
}

/// Invalid commands and their errors.
const INVALID: &str = r#"
TOLLGATE.CHECK bucket => -ERR wrong number of arguments for 'tollgate.check' command; usage:
  TOLLGATE.CHECK policy key [COST cost] [TIER tier] [NOTE note] [ID request-id] [LEASE lease-id]
  [AND policy key … …]
TOLLGATE.CHECK buckets k => -ERR there is no policy "buckets"; did you mean "bucket"?
TOLLGATE.CHECK LIMIT 1/s k TIER pro => -ERR limit and tier are mutually exclusive; only a policy
  has tiers
TOLLGATE.CHECK bucket k COTS 1 => -ERR unknown keyword "COTS" of tollgate.check; did you mean
  "COST"?
TOLLGATE.CHECK bucket k FOR 1 => -ERR unknown keyword "FOR" of tollgate.check; expected one of
  COST, TIER, NOTE, ID, LEASE
TOLLGATE.CHECK bucket k COST => -ERR COST has no value
TOLLGATE.CHECK bucket k COST 1 cost 2 => -ERR COST occurs twice in a check; write it once
TOLLGATE.CHECK bucket k ID a NOTE n ID b => -ERR ID occurs twice in a check; write it once
TOLLGATE.CHECK bucket k COST -1 => -ERR COST is "-1"; write an integer from 0 to 9007199254740991,
  such as 1
TOLLGATE.CHECK bucket k COST 9007199254740992 => -ERR COST is "9007199254740992"; write an integer
  from 0 to 9007199254740991, such as 1
TOLLGATE.CHECK slots k LEASE x => -ERR LEASE is "x"; an id is 32 hexadecimal digits
TOLLGATE.CHECK bucket k AND slots k LEASE 0000000000000000000000000000000a => -ERR LEASE applies
  to all checks; write it before the first AND
TOLLGATE.TAKE bucket k AND log k => -ERR tollgate.take takes one check; unexpected "AND"
TOLLGATE.RESERVE queue k MAXWAIT 1s => -ERR MAXWAIT is "1s"; write microseconds in digits, such as
  1500000
TOLLGATE.CANCEL queue k => -ERR the reservation id is missing; send the one that reserve returned,
  32 hexadecimal digits
TOLLGATE.RENEW slots k => -ERR the lease id is missing; send the one that acquire returned, 32
  hexadecimal digits
TOLLGATE.REFUND bucket k COST 0 => -ERR refund needs an amount of at least 1, but it is 0
TOLLGATE.ACQUIRE bucket k => -ERR acquire is for requests in flight; this policy has no concurrent
  limit, such as "20 concurrent lease 60s"
"#;

#[tokio::test]
async fn invalid_arguments_are_rejected_with_the_remedy() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    check_rows(&mut client, INVALID, 18).await;
    let reply = client.call_bytes(&[b"TOLLGATE.CHECK", b"LIMIT", b"1/fortnight", b"k"]).await;
    assert!(reply.starts_with("-ERR LIMIT: "), "{reply}");
    let reply = client.call_bytes(&[b"TOLLGATE.CHECK", b"\xff", b"k"]).await;
    assert_eq!(reply, "-ERR policy is \"\\xff\"; write it in UTF-8");
    let id = "i".repeat(257);
    let reply = client.call(&format!("TOLLGATE.CHECK bucket k ID {id}")).await;
    assert_eq!(reply, "-ERR the request id has 257 bytes; it must have 1 to 256");
    let many = " AND bucket k".repeat(32);
    let reply = client.call(&format!("TOLLGATE.CHECK bucket k{many}")).await;
    assert_eq!(reply, "-ERR a request has at most 32 checks; send several requests");
    client.call("TOLLGATE.CHECK log k ID two").await;
    let reply = client.call("TOLLGATE.CHECK log l ID two").await;
    assert!(reply.starts_with("-ERR the request_id was used before"), "{reply}");
}

#[tokio::test]
async fn limits_of_several_words_are_one_argument() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    client.send(&encode(&[b"TOLLGATE.CHECK", b"LIMIT", b"10/s burst 20; 100/min log", b"k"])).await;
    let reply = client.read_reply().await;
    assert!(reply.contains("$5 limit $13 10/s burst 20 "), "{reply}");
    assert!(reply.contains("$5 limit $11 100/min log "), "{reply}");
}

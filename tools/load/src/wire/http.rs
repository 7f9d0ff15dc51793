//! `POST /v1/check` over HTTP/1.1.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Requests;
use super::template::{Placeholder, Template};
use crate::keys::Keys;
use crate::plan::{CheckSpec, Endpoint, LimitedBy};
use crate::reply::{
    Decision, ErrorKind, ParseResult, ParsedReply, ProtocolError, Reply, RequestError,
};

const MAX_HEADERS: usize = 32;
const MAX_BODY: usize = 1024 * 1024;
const MAX_HEAD_LEN: usize = 64 * 1024;

pub(super) fn requests(
    endpoint: &Endpoint,
    check: &CheckSpec,
    keys: &Keys,
    has_leases: bool,
) -> Requests {
    let authorization = match &endpoint.password {
        Some(token) => format!("authorization: Bearer {token}\r\n"),
        None => String::new(),
    };
    let request = |path: &str, fields: &[(&str, Field)]| {
        let body = body(check, keys, fields);
        let head = format!(
            "POST /v1/{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             {authorization}content-length: {}\r\n\r\n",
            endpoint.address(),
            body.len(),
        );
        Template::default().text(&head).append(&body)
    };
    let cost = |cost| ("cost", Field::Cost(cost));
    let lease = ("lease_id", Field::Lease);
    Requests {
        probe: request("peek?status=200", &[cost(0)]),
        check: match has_leases {
            true => request("acquire", &[cost(check.cost), lease]),
            false => request("check", &[cost(check.cost)]),
        },
        release: request("release", &[lease]),
    }
}

pub(super) fn parse(input: &[u8]) -> ParseResult {
    let Some(Response { status, body, length, is_last }) = response(input)? else {
        return Ok(None);
    };
    let reply = match parse_decision(body) {
        Some(decision) if matches!(status, 200 | 422 | 429) || decision.degraded => {
            Reply::Decision(decision)
        }
        _ => {
            let kind = if status >= 500 { ErrorKind::Unavailable } else { ErrorKind::Rejected };
            let message = match problem_detail(body) {
                Some(detail) => format!("{status} {detail}"),
                None => status.to_string(),
            };
            Reply::Error(RequestError::new(kind, message))
        }
    };
    Ok(Some(ParsedReply { reply, length, is_last }))
}

pub(super) fn limits(input: &[u8]) -> Vec<String> {
    let Ok(Some(response)) = response(input) else { return Vec::new() };
    let Ok(decision) = serde_json::from_slice::<Value>(response.body) else { return Vec::new() };
    let limits = decision["limits"].as_array().into_iter().flatten();
    limits.filter_map(|limit| limit["limit"].as_str().map(str::to_owned)).collect()
}

/// The value of a field of the body.
#[derive(Clone, Copy, Debug)]
enum Field {
    Cost(u64),
    Lease,
}

fn body(check: &CheckSpec, keys: &Keys, fields: &[(&str, Field)]) -> Template {
    let (field, text) = match &check.limited_by {
        LimitedBy::Policy(name) => ("policy", name),
        LimitedBy::Limits(text) => ("limit", text),
    };
    // The number of the key precedes the closing quote of its prefix.
    let mut prefix = json!(keys.prefix).to_string();
    prefix.truncate(prefix.len() - 1);
    let mut body = Template::default()
        .text(&format!("{{\"{field}\":{},\"key\":{prefix}", json!(text)))
        .placeholder(Placeholder::Key(keys.width()))
        .text("\"");
    for (name, value) in fields {
        body = body.text(&format!(",\"{name}\":"));
        body = match value {
            Field::Cost(cost) => body.text(&cost.to_string()),
            Field::Lease => body.text("\"").placeholder(Placeholder::Lease).text("\""),
        };
    }
    body.text("}")
}

/// A complete response.
#[derive(Clone, Copy, Debug)]
struct Response<'a> {
    status: u16,
    body: &'a [u8],
    length: usize,
    /// Whether the server closes the connection after this response.
    is_last: bool,
}

fn response(input: &[u8]) -> Result<Option<Response<'_>>, ProtocolError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let start = match head.parse(input) {
        Ok(httparse::Status::Complete(complete)) => complete,
        Ok(httparse::Status::Partial) if input.len() < MAX_HEAD_LEN => return Ok(None),
        Ok(httparse::Status::Partial) => {
            return Err(ProtocolError("the response headers are too long"));
        }
        Err(_) => return Err(ProtocolError("the response is not HTTP")),
    };
    let header = |name: &str| {
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let is_last = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let length: usize = header("content-length")
        .and_then(|value| value.trim().parse().ok())
        .filter(|length| *length <= MAX_BODY)
        .ok_or(ProtocolError("the response has no valid content-length"))?;
    let status = head.code.ok_or(ProtocolError("the response has no status"))?;
    let body = input.get(start..start + length);
    Ok(body.map(|body| Response { status, body, length: start + length, is_last }))
}

#[derive(Debug, Deserialize)]
struct DecisionBody<'a> {
    allowed: bool,
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(default)]
    degraded: bool,
    #[serde(borrow)]
    time: &'a RawValue,
    #[serde(borrow)]
    delay: &'a RawValue,
}

/// Parses a decision.
fn parse_decision(body: &[u8]) -> Option<Decision> {
    let value: DecisionBody<'_> = serde_json::from_slice(body).ok()?;
    let (time, delay) = (micros(value.time.get())?, micros(value.delay.get())?);
    Some(Decision::from_fields(value.allowed, value.degraded, &value.reason, time, delay))
}

/// The detail of a problem document (RFC 9457).
fn problem_detail(body: &[u8]) -> Option<String> {
    let problem: Value = serde_json::from_slice(body).ok()?;
    Some(problem["detail"].as_str()?.to_owned())
}

/// The microseconds of a number of seconds with up to six decimals.
fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(6 - part.len()).ok()?)?;
    let part: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part * scale)
}

#[cfg(test)]
mod tests {
    use tollgate::Id;

    use super::*;
    use crate::wire::Wire;

    fn http(leases: bool) -> Wire {
        let endpoint =
            Endpoint { host: "::1".into(), port: 80, user: None, password: Some("t".into()) };
        let limited_by = LimitedBy::Limits("10/s".into());
        let keys = Keys { prefix: "a\"".into(), count: 11, zipf: None, seed: 1 };
        Wire::http(&endpoint, &CheckSpec { limited_by, cost: 3 }, &keys, leases)
    }

    #[test]
    fn a_request_contains_the_key() {
        let mut out = Vec::new();
        http(false).write_check(7, 0, Id::from_u128(0), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/check HTTP/1.1\r\nhost: [::1]:80\r\ncontent-type: application/json\r\n\
             authorization: Bearer t\r\ncontent-length: 39\r\n\r\n\
             {\"limit\":\"10/s\",\"key\":\"a\\\"07\",\"cost\":3}"
        );
    }

    #[test]
    fn responses_are_parsed_once_they_are_complete() {
        let body = r#"{"allowed":true,"reason":"ok","time":5.25,"delay":0}"#;
        let check = |head: &str, body: &str, expected: Result<bool, ErrorKind>| {
            let all = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let http = http(true);
            for cut in 0..all.len() {
                assert_eq!(http.parse(&all.as_bytes()[..cut]), Ok(None), "{cut} bytes of {all}");
            }
            let twice = all.repeat(2);
            let parsed = http.parse(twice.as_bytes()).unwrap().unwrap();
            assert_eq!((parsed.length, parsed.is_last), (all.len(), head.contains("close")));
            let found = match parsed.reply {
                Reply::Decision(decision) => Ok(decision.allowed),
                Reply::Error(error) => Err(error.kind),
            };
            assert_eq!(found, expected, "{all}");
        };
        check("200 OK", body, Ok(true));
        check("200 OK\r\nconnection: close", body, Ok(true));
        check("429 Too Many Requests", &body.replace("true", "false"), Ok(false));
        check("400 Bad Request", r#"{"detail":"no"}"#, Err(ErrorKind::Rejected));
        check("503 Service Unavailable", "down", Err(ErrorKind::Unavailable));
        check("200 OK", "hello", Err(ErrorKind::Rejected));
        let degraded = body.replace("true", "false,\"degraded\":true");
        check("503 Service Unavailable", &degraded, Ok(false));
        assert!(http(false).parse(b"+PONG\r\n").is_err());
        assert!(http(false).parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn times_are_exact_to_the_microsecond() {
        let check =
            |text: &str, expected: Option<u64>| assert_eq!(micros(text), expected, "{text}");
        check("1763650000.123456", Some(1_763_650_000_123_456));
        check("0", Some(0));
        check("0.1", Some(100_000));
        check("0.1234567", None);
        check("-1", None);
        check("1e3", None);
        check("99999999999999999999", None);
    }
}

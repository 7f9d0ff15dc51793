//! `POST /v1/check` over HTTP/1.1.

use serde_json::{Value, json};
use tollgate::Id;

use super::decision;
use super::template::{Placeholder, Template};
use crate::keys::Keys;
use crate::plan::{CheckSpec, Endpoint, LimitedBy};
use crate::reply::{ErrorKind, ParseResult, ParsedReply, ProtocolError, Reply, RequestError};

/// Encodes requests to the HTTP API and parses its responses.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    probe: Vec<u8>,
    check: Template,
    release: Template,
}

const MAX_HEADERS: usize = 32;
const MAX_BODY: usize = 1024 * 1024;
const MAX_HEAD_LEN: usize = 64 * 1024;

impl Http {
    pub(crate) fn new(
        endpoint: &Endpoint,
        check: &CheckSpec,
        keys: &Keys,
        has_leases: bool,
    ) -> Self {
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
        let cost = ("cost", Field::Value(json!(check.cost)));
        let lease = ("lease_id", Field::Lease);
        let probe = request("peek?status=200", &[("cost", Field::Value(json!(0)))]);
        let check = match has_leases {
            true => request("acquire", &[cost, lease.clone()]),
            false => request("check", &[cost]),
        };
        Http { probe: probe.bytes().to_vec(), check, release: request("release", &[lease]) }
    }

    pub(super) fn probe(&self) -> &[u8] {
        &self.probe
    }

    pub(super) fn write_check(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        self.check.write(key, 0, lease, out);
    }

    pub(super) fn write_release(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        self.release.write(key, 0, lease, out);
    }

    pub(super) fn parse(&self, input: &[u8]) -> ParseResult {
        let Some(Response { status, body, length, is_last }) = response(input)? else {
            return Ok(None);
        };
        let reply = match decision::parse(body) {
            Some(decision) if matches!(status, 200 | 422 | 429) || decision.degraded => {
                Reply::Decision(decision)
            }
            _ => {
                let kind = if status >= 500 { ErrorKind::Unavailable } else { ErrorKind::Rejected };
                let message = match decision::problem_detail(body) {
                    Some(detail) => format!("{status} {detail}"),
                    None => status.to_string(),
                };
                Reply::Error(RequestError::new(kind, message))
            }
        };
        Ok(Some(ParsedReply { reply, length, is_last }))
    }

    pub(super) fn limits(&self, input: &[u8]) -> Vec<String> {
        match response(input) {
            Ok(Some(response)) => decision::limits(response.body),
            _ => Vec::new(),
        }
    }
}

/// The value of a field of the body.
#[derive(Clone, Debug)]
enum Field {
    Value(Value),
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
            Field::Value(value) => body.text(&value.to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn http(leases: bool) -> Http {
        let endpoint =
            Endpoint { host: "::1".into(), port: 80, user: None, password: Some("t".into()) };
        let limited_by = LimitedBy::Limits("10/s".into());
        let keys = Keys { prefix: "a\"".into(), count: 11, zipf: None, seed: 1 };
        Http::new(&endpoint, &CheckSpec { limited_by, cost: 3 }, &keys, leases)
    }

    #[test]
    fn a_request_contains_the_key() {
        let mut out = Vec::new();
        http(false).write_check(7, Id::from_u128(0), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/check HTTP/1.1\r\nhost: [::1]:80\r\ncontent-type: application/json\r\n\
             authorization: Bearer t\r\ncontent-length: 39\r\n\r\n\
             {\"limit\":\"10/s\",\"key\":\"a\\\"07\",\"cost\":3}"
        );
    }

    #[test]
    fn responses_are_parsed_once_they_are_complete() {
        let body = r#"{"allowed":true,"reason":"limit","time":5.25,"delay":0}"#;
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
}

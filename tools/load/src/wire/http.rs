//! `POST /v1/check` over HTTP/1.1.

use serde_json::{Value, json};
use tollgate::Id;

use super::decision;
use super::template::{Hole, Template};
use super::{Read, Taken};
use crate::answer::{Broken, ErrorKind, Reply};
use crate::keys::Keys;
use crate::plan::{LimitedBy, Peer, Question};

/// How a daemon is asked over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    probe: Vec<u8>,
    check: Template,
    release: Template,
}

/// The most headers of an answer, and the most bytes of its body.
const MAX_HEADERS: usize = 32;
const MAX_BODY: usize = 1024 * 1024;
const MAX_HEAD_LEN: usize = 64 * 1024;

impl Http {
    pub(crate) fn new(peer: &Peer, question: &Question, keys: &Keys, leases: bool) -> Self {
        let build = |verb: &str, more: &[(&str, Part)]| {
            let body = body(question, keys, more);
            let token = peer.password.as_ref();
            let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
            let head = format!(
                "POST /v1/{verb} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
                 {}content-length: {}\r\n\r\n",
                peer.address(),
                token.unwrap_or_default(),
                body.len(),
            );
            Template::default().text(&head).then(&body)
        };
        let cost = ("cost", Part::Is(json!(question.cost)));
        let lease = ("lease_id", Part::Lease);
        let probe = build("peek?status=200", &[("cost", Part::Is(json!(0)))]);
        let check = if leases { vec![cost, lease.clone()] } else { vec![cost] };
        let verb = if leases { "acquire" } else { "check" };
        Http {
            probe: probe.bytes().to_vec(),
            check: build(verb, &check),
            release: build("release", &[lease]),
        }
    }

    pub(super) fn probe(&self) -> &[u8] {
        &self.probe
    }

    pub(super) fn ask(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        self.check.write(key, 0, lease, out);
    }

    pub(super) fn release(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        self.release.write(key, 0, lease, out);
    }

    pub(super) fn read(&self, input: &[u8]) -> Read {
        let Some(value) = response(input)? else { return Ok(None) };
        let reply = match decision::read(value.body) {
            Some(answer) if matches!(value.status, 200 | 422 | 429) || answer.degraded => {
                Reply::Answer(answer)
            }
            _ => {
                let kind =
                    if value.status >= 500 { ErrorKind::Unavailable } else { ErrorKind::Rejected };
                let said = decision::problem(value.body).unwrap_or_default();
                Reply::Error(kind, format!("{} {said}", value.status).trim_end().to_owned())
            }
        };
        Ok(Some(Taken { reply, length: value.length, is_last: value.is_last }))
    }

    pub(super) fn limits(&self, input: &[u8]) -> Vec<String> {
        match response(input) {
            Ok(Some(value)) => decision::limits(value.body),
            _ => Vec::new(),
        }
    }
}

/// A value of the body.
#[derive(Clone, Debug)]
enum Part {
    Is(Value),
    Lease,
}

fn body(question: &Question, keys: &Keys, more: &[(&str, Part)]) -> Template {
    let (field, text) = match &question.limited_by {
        LimitedBy::Policy(name) => ("policy", name),
        LimitedBy::Limits(text) => ("limit", text),
    };
    // The number goes behind the prefix, before the quote that ends it.
    let prefix = json!(keys.prefix).to_string();
    let prefix = prefix.strip_suffix('"').unwrap_or(&prefix);
    let mut body = Template::default()
        .text(&format!("{{\"{field}\":{},\"key\":{prefix}", json!(text)))
        .hole(Hole::Key(keys.width()))
        .text("\"");
    for (name, part) in more {
        body = body.text(&format!(",\"{name}\":"));
        body = match part {
            Part::Is(value) => body.text(&value.to_string()),
            Part::Lease => body.text("\"").hole(Hole::Lease).text("\""),
        };
    }
    body.text("}")
}

/// An answer, whole.
#[derive(Clone, Copy, Debug)]
struct Response<'a> {
    status: u16,
    body: &'a [u8],
    length: usize,
    /// Whether it says that the connection ends with it.
    is_last: bool,
}

fn response(input: &[u8]) -> Result<Option<Response<'_>>, Broken> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let start = match head.parse(input) {
        Ok(httparse::Status::Complete(complete)) => complete,
        Ok(httparse::Status::Partial) if input.len() < MAX_HEAD_LEN => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(Broken("its headers do not end")),
        Err(_) => return Err(Broken("what came is not HTTP")),
    };
    let header = |name: &str| {
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let is_last = header("connection").is_some_and(|x| x.eq_ignore_ascii_case("close"));
    let length = header("content-length").and_then(|x| x.trim().parse().ok());
    let length: usize = length
        .filter(|length| *length <= MAX_BODY)
        .ok_or(Broken("its body has no length, or too much"))?;
    let status = head.code.unwrap_or(0);
    let body = input.get(start..start + length);
    Ok(body.map(|body| Response { status, body, length: start + length, is_last }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(leases: bool) -> Http {
        let peer = Peer { host: "::1".into(), port: 80, user: None, password: Some("t".into()) };
        let limited_by = LimitedBy::Limits("10/s".into());
        let keys = Keys { prefix: "a\"".into(), count: 11, zipf: None, seed: 1 };
        Http::new(&peer, &Question { limited_by, cost: 3 }, &keys, leases)
    }

    #[test]
    fn a_request_is_the_template_with_its_key() {
        let mut out = Vec::new();
        http(false).ask(7, Id::from_u128(0), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/check HTTP/1.1\r\nhost: [::1]:80\r\ncontent-type: application/json\r\n\
             authorization: Bearer t\r\ncontent-length: 39\r\n\r\n\
             {\"limit\":\"10/s\",\"key\":\"a\\\"07\",\"cost\":3}"
        );
    }

    #[test]
    fn replies_are_read_whole_or_not_yet() {
        let body = r#"{"allowed":true,"reason":"limit","time":5.25,"delay":0}"#;
        let check = |head: &str, body: &str, expected: Result<bool, ErrorKind>| {
            let all = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let http = http(true);
            for cut in 0..all.len() {
                assert_eq!(http.read(&all.as_bytes()[..cut]), Ok(None), "{cut} bytes of {all}");
            }
            let twice = all.repeat(2);
            let taken = http.read(twice.as_bytes()).unwrap().unwrap();
            assert_eq!((taken.length, taken.is_last), (all.len(), head.contains("close")));
            let found = match taken.reply {
                Reply::Answer(answer) => Ok(answer.allowed),
                Reply::Error(kind, _) => Err(kind),
            };
            assert_eq!(found, expected, "{all}");
        };
        check("200 OK", body, Ok(true));
        check("200 OK\r\nconnection: close", body, Ok(true));
        check("429 Too Many Requests", &body.replace("true", "false"), Ok(false));
        check("400 Bad Request", r#"{"detail":"no"}"#, Err(ErrorKind::Rejected));
        check("503 Service Unavailable", "away", Err(ErrorKind::Unavailable));
        check("200 OK", "hello", Err(ErrorKind::Rejected));
        let degraded = body.replace("true", "false,\"degraded\":true");
        check("503 Service Unavailable", &degraded, Ok(false));
        assert!(http(false).read(b"+PONG\r\n").is_err());
        assert!(http(false).read(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}

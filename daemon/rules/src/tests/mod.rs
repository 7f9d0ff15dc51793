//! Rules, keys and tokens as tables of cases.

mod find;
mod jwt;
mod key_form;
mod keys;

use http::header::{HeaderMap, HeaderName};

use super::*;

/// Headers from lines such as `x-plan: pro`.
fn headers(lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    headers
}

/// A GET request with a host and a client address.
fn facts<'a>(target: &'a str, headers: &'a HeaderMap) -> Facts<'a> {
    let mut facts = Facts::new("GET", target.as_bytes(), headers);
    facts.host = Ok("Example.com:8080");
    facts.client = Client::Known("203.0.113.7".parse().unwrap());
    facts
}

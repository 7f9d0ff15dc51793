//! What a gateway says of the request that it asks about, and where it says it.

use hyper::header::HeaderMap;
use hyper::http::request::Parts;

use super::PREFIX;
use crate::rules::AddressHeader;

/// The way in which a gateway tells of a request: one place for each thing, and no other is looked
/// at.
#[derive(Debug)]
pub(in crate::http) struct Dialect {
    /// Its name in the path.
    pub(super) name: &'static str,
    pub(super) method: Told,
    /// The path and query.
    pub(super) target: Told,
    pub(super) host: Told,
    pub(super) address: AddressHeader,
    /// The line of the recipe that has the gateway send the address.
    pub(super) address_line: &'static str,
}

/// Where something is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// In a header, which a line of the recipe sets.
    Header(&'static str, &'static str),
    /// By what the request itself is.
    ByTheRequest,
}

/// A header in which something is told.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct ToldBy {
    pub(in crate::http) name: &'static str,
    pub(in crate::http) what: &'static str,
    /// Whether it must be there for every request, and not only where a rule asks for it.
    pub(in crate::http) always: bool,
}

impl Dialect {
    /// Its address, but for what a gateway that sends the client's own path puts behind it.
    pub(in crate::http) fn address(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    pub(in crate::http) fn name(&self) -> &'static str {
        self.name
    }

    /// The headers that it reads, beside those that rules name.
    pub(in crate::http) fn told_by(&self) -> impl Iterator<Item = ToldBy> {
        let told = |told: Told, by_itself, what, always| match told {
            Told::Header(name, _) => Some(ToldBy { name, what, always }),
            Told::ByTheRequest => by_itself,
        };
        let host = "The host that the client asked for, where a rule asks for it.";
        let own_host = Some(ToldBy { name: "Host", what: host, always: false });
        let address = ToldBy {
            name: self.address.name,
            what: "The client's address, where a rule asks for it.",
            always: false,
        };
        let all = [
            told(self.method, None, "The method of the client's request.", true),
            told(self.target, None, "The path and query of the client's request.", true),
            told(self.host, own_host, host, false),
            Some(address),
        ];
        all.into_iter().flatten()
    }

    /// Whether a query is ours; else it is part of what the gateway tells.
    pub(in crate::http) fn has_query(&self) -> bool {
        matches!(self.target, Told::Header(..))
    }

    pub(super) fn method<'a>(&self, head: &'a Parts) -> Result<&'a str, String> {
        match self.method {
            Told::Header(name, line) => text(name, one(&head.headers, name, line)?),
            Told::ByTheRequest => Ok(head.method.as_str()),
        }
    }

    /// The path and query, as they were sent.
    pub(super) fn target<'a>(&self, head: &'a Parts) -> Result<&'a [u8], String> {
        match self.target {
            Told::Header(name, line) => one(&head.headers, name, line),
            Told::ByTheRequest => {
                let whole =
                    head.uri.path_and_query().map_or("", |path_and_query| path_and_query.as_str());
                let after =
                    whole.strip_prefix(PREFIX).and_then(|whole| whole.strip_prefix(self.name));
                Ok(after.unwrap_or_default().as_bytes())
            }
        }
    }

    /// The host; empty if the client named none, or wrote what is none. No rule is for such a host,
    /// but what a client can bring about by itself is decided.
    pub(super) fn host<'a>(&self, head: &'a Parts) -> Result<&'a str, String> {
        let told = match (self.host, head.uri.authority()) {
            (Told::Header(name, line), _) => single(&head.headers, name, line)?,
            // As HTTP/2 tells it.
            (Told::ByTheRequest, Some(authority)) => authority.as_str().as_bytes(),
            (Told::ByTheRequest, None) => single(&head.headers, "Host", "one Host")?,
        };
        Ok(str::from_utf8(told).unwrap_or_default())
    }
}

/// The value of a header that must be there once, and say something.
fn one<'a>(headers: &'a HeaderMap, name: &str, line: &str) -> Result<&'a [u8], String> {
    let value = single(headers, name, line)?;
    if value.is_empty() { Err(missing(name, line)) } else { Ok(value) }
}

/// The value of a header that must be there once.
fn single<'a>(headers: &'a HeaderMap, name: &str, line: &str) -> Result<&'a [u8], String> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(value), None) => Ok(value.as_bytes()),
        (Some(_), Some(_)) => Err(format!(
            "{name} came twice, and nobody knows which is the gateway's; write {line} in the gateway, \
             in place of what the client sent"
        )),
        (None, _) => Err(missing(name, line)),
    }
}

fn missing(name: &str, line: &str) -> String {
    format!("{name} is missing; write {line} in the gateway")
}

fn text<'a>(name: &str, value: &'a [u8]) -> Result<&'a str, String> {
    str::from_utf8(value).map_err(|_| format!("{name} is not text"))
}

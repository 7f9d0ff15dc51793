//! Where a request comes from, by its head: a client, a proxy or a web page.
//!
//! Browsers let every web page send requests to this machine. They state the page's site in
//! `Sec-Fetch-Site` and its origin in `Origin`; a page that has pointed a name of its own at this
//! machine is recognized by that name in `Host`. A gateway relays these headers of its own client:
//! forward auth does not check them.

use std::net::IpAddr;

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Uri};
use tollgate_engine::{ActiveConfig, Remote};

use super::problem::{Problem, ProblemKind};

/// The part of a request's head that identifies its originator.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'r> {
    /// The headers.
    pub headers: &'r HeaderMap,
    /// The authority of the request target, as in HTTP/2.
    authority: Option<&'r Authority>,
    has_body: bool,
    /// Whether the listener serves pages, whose requests are as direct as those of programs.
    serves_pages: bool,
}

impl<'r> RequestHead<'r> {
    /// The head of a request.
    #[must_use]
    pub fn new(method: &Method, target: &'r Uri, headers: &'r HeaderMap) -> Self {
        let (authority, has_body) = (target.authority(), *method == Method::POST);
        RequestHead { headers, authority, has_body, serves_pages: false }
    }

    /// The head of a request whose target is unknown.
    #[must_use]
    pub fn without_target(headers: &'r HeaderMap) -> Self {
        RequestHead { headers, authority: None, has_body: true, serves_pages: false }
    }

    /// The head of a request to a listener that serves pages.
    #[must_use]
    pub fn to_pages(self) -> Self {
        RequestHead { serves_pages: true, ..self }
    }

    /// Refuses requests that a web page of another origin makes a browser send.
    ///
    /// # Errors
    /// The rule that refuses the request.
    pub fn check_origin(self, remote: &Remote, active: &ActiveConfig) -> Result<(), Problem> {
        let is_from_browser = self.is_from_browser();
        let refusal = if is_from_browser && self.is_cross_site() {
            "a web page of another site sent the request, as Sec-Fetch-Site states; send it from a \
             program"
        } else if is_from_browser && !self.is_own_origin() {
            "a web page of another origin sent the request, as Origin states; send it from a program"
        } else if self.has_body && is_from_browser && !self.is_json() {
            "a request of a web page needs the header content-type: application/json; add it"
        } else {
            return self.check_host(remote, active);
        };
        Err(Problem::new(ProblemKind::Forbidden, refusal))
    }

    /// Refuses requests for a name that a web page may have pointed at this machine. A listener of
    /// pages is for this machine if it needs no token, also on a Unix socket, which may be
    /// forwarded.
    ///
    /// # Errors
    /// The `Host` is foreign.
    pub fn check_host(self, remote: &Remote, active: &ActiveConfig) -> Result<(), Problem> {
        let is_listed = |host: &str| {
            let host = host.to_ascii_lowercase();
            let host = host.strip_suffix('.').unwrap_or(&host);
            active.hosts.iter().any(|pattern| pattern.matches(host))
        };
        let is_own_host =
            |host: &str| address(host).is_some() || is_localhost(host) || is_listed(host);
        let is_local = remote.has_loopback_listener || self.serves_pages && active.access.is_open();
        if !is_local || self.hosts_are(is_own_host) {
            return Ok(());
        }
        let refusal = "the Host is foreign: on a loopback address it must be localhost, an IP \
                       address or a name in listen.hosts; use one of those, or add the name";
        Err(Problem::new(ProblemKind::Forbidden, refusal))
    }

    fn is_cross_site(self) -> bool {
        let sites = self.headers.get_all("sec-fetch-site").iter();
        sites.into_iter().any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
    }

    /// Whether `Origin`, if present, is the host that the request is for.
    fn is_own_origin(self) -> bool {
        let own = self.authority.map(|own| own.as_str().as_bytes());
        let own = own.or_else(|| self.headers.get(HOST).map(HeaderValue::as_bytes));
        self.headers.get_all(ORIGIN).iter().all(|origin| {
            let origin = origin.as_bytes();
            let host = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
            host.zip(own).is_some_and(|(host, own)| host.eq_ignore_ascii_case(own))
        })
    }

    fn is_from_browser(self) -> bool {
        let is_stated = |name: &str| name != "referer" && is_of_browser(name);
        self.headers.keys().any(|name| is_stated(name.as_str()))
    }

    fn is_json(self) -> bool {
        let Some(kind) = self.headers.get(CONTENT_TYPE) else { return false };
        let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    }

    /// Whether nothing in it shows that it came through a proxy or from a web page: no header that
    /// those add, and no host other than this machine. A page of the listener itself may send it.
    pub(super) fn is_direct(self) -> bool {
        let is_own_page = self.serves_pages && !self.is_cross_site() && self.is_own_origin();
        let is_foreign = |name: &str| is_added(name) && !(is_own_page && is_of_browser(name));
        !self.headers.keys().any(|name| is_foreign(name.as_str()))
            && self.hosts_are(is_this_machine)
    }

    /// Whether all hosts that it names fulfil a condition. An invalid one does not.
    fn hosts_are(self, condition: impl Fn(&str) -> bool) -> bool {
        let mut hosts = self.headers.get_all(HOST).iter();
        self.authority.is_none_or(|authority| condition(authority.host()))
            && hosts.all(|host| host.to_str().ok().and_then(without_port).is_some_and(&condition))
    }
}

impl<'r> From<&'r Parts> for RequestHead<'r> {
    fn from(parts: &'r Parts) -> Self {
        RequestHead::new(&parts.method, &parts.uri, &parts.headers)
    }
}

/// Headers that proxies and browsers add.
const ADDED_HEADERS: [&str; 9] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "origin",
    "referer",
];

/// The beginnings of more such headers.
const ADDED_PREFIXES: [&str; 4] = ["x-forwarded-", "x-original-", "x-envoy-", "sec-fetch-"];

fn is_added(name: &str) -> bool {
    ADDED_HEADERS.contains(&name) || ADDED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether only browsers add the header.
fn is_of_browser(name: &str) -> bool {
    matches!(name, "origin" | "referer") || name.starts_with("sec-fetch-")
}

/// Whether a host is this machine, whatever a name server answers.
fn is_this_machine(host: &str) -> bool {
    match address(host) {
        Some(address) => address.to_canonical().is_loopback(),
        None => is_localhost(host),
    }
}

/// The host of a `Host` header, which has no user name.
fn without_port(authority: &str) -> Option<&str> {
    let is_valid = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'[' | b']' | b':')
    };
    let (host, port) = match authority.rsplit_once(':') {
        // A colon within brackets is part of an address.
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && host.bytes().all(is_valid)).then_some(host)
}

/// A host that is an IP address.
fn address(host: &str) -> Option<IpAddr> {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address.parse().ok()
}

/// `localhost` or a name below it (RFC 6761).
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).as_bytes();
    let suffix = b".localhost";
    host.eq_ignore_ascii_case(b"localhost")
        || host
            .len()
            .checked_sub(suffix.len())
            .is_some_and(|begin| host.split_at(begin).1.eq_ignore_ascii_case(suffix))
}

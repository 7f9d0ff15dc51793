//! Who asks, and what may be asked from there.

use std::net::SocketAddr;

use hyper::header::HeaderMap;

use super::problem::{Kind, Problem};
use crate::rules::Peer;

/// Headers that a proxy or a browser adds: such a request was not made on this machine, or not by
/// who works on it.
const FROM_ELSEWHERE: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-real-ip", "origin"];

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    peer: SocketAddr,
    headers: &'a HeaderMap,
}

impl<'a> Caller<'a> {
    pub(super) fn new(peer: SocketAddr, headers: &'a HeaderMap) -> Self {
        Caller { peer, headers }
    }

    /// Who is at the other end of the connection.
    pub(super) fn peer(&self) -> Peer {
        Peer::Ip(self.peer.ip())
    }

    pub(super) fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    fn is_local(&self) -> bool {
        let passed_on = FROM_ELSEWHERE.iter().any(|it| self.headers.contains_key(*it));
        self.peer.ip().to_canonical().is_loopback() && !passed_on
    }

    /// Refuses what only an operator may ask. Until tokens say who one is, it is who works on
    /// this machine.
    pub(super) fn must_operate(&self, what: &str) -> Result<(), Problem> {
        if self.is_local() {
            return Ok(());
        }
        Err(Problem::new(
            Kind::Forbidden,
            format!(
                "{what} is taken from loopback only, and not through a proxy or from a web page; \
                 send it from the machine that tollgate runs on"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn only_who_works_on_this_machine_operates() {
        for (peer, header, operates) in [
            ("127.0.0.1:1", None, true),
            ("127.8.9.10:1", None, true),
            ("[::1]:1", None, true),
            ("[::ffff:127.0.0.1]:1", None, true),
            ("10.0.0.1:1", None, false),
            ("[::ffff:10.0.0.1]:1", None, false),
            ("0.0.0.0:1", None, false),
            ("127.0.0.1:1", Some("x-forwarded-for"), false),
            ("127.0.0.1:1", Some("forwarded"), false),
            ("127.0.0.1:1", Some("origin"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(name) = header {
                headers.insert(name, HeaderValue::from_static("anything"));
            }
            let caller = Caller::new(peer.parse().unwrap(), &headers);
            assert_eq!(caller.must_operate("reset").is_ok(), operates, "{peer} {header:?}");
        }
    }
}

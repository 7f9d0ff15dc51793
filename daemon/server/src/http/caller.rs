//! Who asks over HTTP, by where it came from and what its headers bring.

use hyper::header::{AUTHORIZATION, HeaderMap};

use super::problem::{Kind, Problem};
use crate::access::{Access, Refusal, Who};
use crate::config::Scope;
use crate::listener::{self, Remote};
use crate::rules::Peer;

/// Headers that a proxy or a browser adds: such a request was not made on this machine, or not by
/// who works on it.
const FROM_ELSEWHERE: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-real-ip", "origin"];

/// Where a request brings its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bears {
    /// In `Authorization: Bearer …`.
    Authorization,
    /// In `Tollgate-Token`, as gateways send it: `Authorization`, which they relay, is their
    /// client's own, and says nothing about the gateway.
    TollgateToken,
}

/// Where a request came from, and who made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    remote: &'a Remote,
    headers: &'a HeaderMap,
    pub(crate) who: Who<'a>,
}

impl<'a> Caller<'a> {
    /// Who asks, if they may ask anything at all.
    pub(crate) fn of(
        remote: &'a Remote,
        headers: &'a HeaderMap,
        bears: Bears,
        access: &'a Access,
    ) -> Result<Self, Problem> {
        if access.is_open() {
            let who = Who::Anyone { is_local: is_local(remote, headers) };
            return Ok(Caller { remote, headers, who });
        }
        let who = secret(headers, bears)?.and_then(|x| access.bearer(x));
        who.map(|who| Caller { remote, headers, who }).ok_or_else(|| unknown(headers, bears))
    }

    /// Who is at the other end of the connection.
    pub(crate) fn peer(&self) -> Peer {
        match self.remote.peer {
            listener::Peer::Tcp(address) => Peer::Ip(address.ip()),
            listener::Peer::Unix => Peer::Unix,
        }
    }

    pub(crate) fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Refuses what needs one of these scopes, to whoever has none of them.
    pub(crate) fn must_have(&self, scopes: &'static [Scope], what: &str) -> Result<(), Problem> {
        Ok(self.who.must_have(scopes, what)?)
    }

    /// Refuses a policy that the caller's token is not for.
    pub(crate) fn must_be_for(&self, policy: &str) -> Result<(), Problem> {
        Ok(self.who.must_be_for(policy)?)
    }
}

fn is_local(remote: &Remote, headers: &HeaderMap) -> bool {
    let passed_on =
        FROM_ELSEWHERE.iter().any(|from_elsewhere| headers.contains_key(*from_elsewhere));
    remote.peer.is_local() && !passed_on
}

/// The secret that a request brings; of several, which one is meant nobody can say.
fn secret(headers: &HeaderMap, bears: Bears) -> Result<Option<&[u8]>, Problem> {
    let mut values = headers.get_all(bears.header()).iter();
    let first = values.next().map(|value| value.as_bytes());
    if values.next().is_some() {
        let detail = format!("{} is there twice; send it once", bears.header());
        return Err(Problem::new(Kind::Unauthorized, detail));
    }
    Ok(match bears {
        Bears::TollgateToken => first,
        Bears::Authorization => first.and_then(|first| {
            let (scheme, secret) = first.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then(|| secret.trim_ascii())
        }),
    })
}

fn unknown(headers: &HeaderMap, bears: Bears) -> Problem {
    let detail = match (headers.contains_key(bears.header()), bears) {
        (true, _) => "the token that was sent is none of the daemon's; look it up in its tokens",
        (false, Bears::Authorization) => {
            "a token is needed; send it as Authorization: Bearer TOKEN"
        }
        (false, Bears::TollgateToken) => {
            "a token is needed; let the gateway send it as Tollgate-Token: TOKEN"
        }
    };
    Problem::new(Kind::Unauthorized, detail)
}

impl Bears {
    pub(super) fn header(self) -> &'static str {
        match self {
            Bears::Authorization => AUTHORIZATION.as_str(),
            Bears::TollgateToken => "tollgate-token",
        }
    }
}

impl From<Refusal> for Problem {
    fn from(it: Refusal) -> Self {
        let kind = match it {
            Refusal::Elsewhere { .. } => Kind::Forbidden,
            Refusal::Scope { .. } | Refusal::Policy { .. } => Kind::TokenLacks,
        };
        Problem::new(kind, it.to_string())
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;
    use crate::config::{TokenConfig, TokenSecret};

    const OPERATE: &[Scope] = &[Scope::Operate];

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_who_works_on_this_machine_operates_without_tokens() {
        let access = Access::default();
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
            ("unix", None, true),
            ("unix", Some("x-forwarded-for"), false),
        ] {
            let headers =
                headers(&header.map(|header| (header, "anything")).into_iter().collect::<Vec<_>>());
            for bears in [Bears::Authorization, Bears::TollgateToken] {
                let peer = peer.parse().map_or(listener::Peer::Unix, listener::Peer::Tcp);
                let remote = Remote::at(peer);
                let caller = Caller::of(&remote, &headers, bears, &access).unwrap();
                let operates_now = caller.must_have(OPERATE, "reset").is_ok();
                assert_eq!(operates_now, operates, "{remote} {header:?}");
                assert!(caller.must_have(&[Scope::Check], "check").is_ok());
            }
        }
    }

    #[test]
    fn a_token_is_taken_from_its_own_header_alone() {
        let token = TokenConfig {
            name: "gateway".to_owned(),
            secret: TokenSecret::Text("s3cret".to_owned()),
            scopes: vec![Scope::Check],
            policies: vec!["*".to_owned()],
        };
        let access = Access::new(&[token]).unwrap();
        let remote = Remote::at(listener::Peer::Tcp("127.0.0.1:1".parse().unwrap()));
        for (given, by_authorization, by_own) in [
            (&[][..], false, false),
            (&[("authorization", "Bearer s3cret")], true, false),
            (&[("authorization", "bearer  s3cret ")], true, false),
            (&[("authorization", "Basic s3cret")], false, false),
            (&[("authorization", "s3cret")], false, false),
            (&[("authorization", "Bearer")], false, false),
            (&[("authorization", "Bearer ")], false, false),
            (&[("authorization", "Bearer s3cre")], false, false),
            (&[("authorization", "Bearer s3cret"), ("authorization", "Bearer x")], false, false),
            (&[("tollgate-token", "s3cret")], false, true),
            (&[("tollgate-token", "Bearer s3cret")], false, false),
            (&[("tollgate-token", "s3cret"), ("tollgate-token", "s3cret")], false, false),
            // What a gateway relays of its client neither helps nor hinders.
            (&[("authorization", "Bearer client"), ("tollgate-token", "s3cret")], false, true),
        ] {
            let headers = headers(given);
            for (bears, known) in
                [(Bears::Authorization, by_authorization), (Bears::TollgateToken, by_own)]
            {
                let caller = Caller::of(&remote, &headers, bears, &access);
                assert_eq!(caller.is_ok(), known, "{given:?} {bears:?}");
            }
        }
    }
}

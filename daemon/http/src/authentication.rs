//! Authentication of HTTP and gRPC requests, by their address and headers.

use hyper::header::{AUTHORIZATION, HeaderMap};
use tollgate_engine::{Access, ActiveConfig, Engine, Error, ErrorKind, Principal, Remote};

/// Headers that proxies and browsers add. A request with one of them was not made by a client on
/// this machine.
const FORWARDING_HEADERS: [&str; 5] =
    ["forwarded", "via", "x-forwarded-for", "x-real-ip", "origin"];

/// The header that contains the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenHeader {
    /// `Authorization: Bearer …`.
    Authorization,
    /// `Tollgate-Token`, for gateways: they forward their own client's `Authorization`.
    TollgateToken,
}

impl TokenHeader {
    pub(super) fn name(self) -> &'static str {
        match self {
            TokenHeader::Authorization => AUTHORIZATION.as_str(),
            TokenHeader::TollgateToken => "tollgate-token",
        }
    }
}

/// Authenticates a request.
///
/// # Errors
/// Tokens are configured, and the request has none, an invalid one, or several.
pub fn authenticate<'a>(
    engine: &Engine,
    active: &'a ActiveConfig,
    remote: &Remote,
    headers: &HeaderMap,
    header: TokenHeader,
) -> Result<Principal<'a>, Error> {
    find_principal(&active.access, remote, headers, header)
        .inspect_err(|_| engine.report_unauthenticated(remote))
}

fn find_principal<'a>(
    access: &'a Access,
    remote: &Remote,
    headers: &HeaderMap,
    header: TokenHeader,
) -> Result<Principal<'a>, Error> {
    if access.is_open() {
        return Ok(Principal::Anonymous { is_local: is_local(remote, headers) });
    }
    secret(headers, header)?
        .and_then(|secret| access.authenticate(secret))
        .ok_or_else(|| unauthenticated(headers, header))
}

fn is_local(remote: &Remote, headers: &HeaderMap) -> bool {
    let is_forwarded = FORWARDING_HEADERS.iter().any(|name| headers.contains_key(*name));
    remote.peer.is_local() && !is_forwarded
}

/// The secret in a header. Several headers are ambiguous.
fn secret(headers: &HeaderMap, header: TokenHeader) -> Result<Option<&[u8]>, Error> {
    let mut values = headers.get_all(header.name()).iter();
    let first = values.next().map(|value| value.as_bytes());
    if values.next().is_some() {
        let detail = format!("the header {} occurs twice; send it once", header.name());
        return Err(Error::new(ErrorKind::Unauthenticated, detail));
    }
    Ok(match header {
        TokenHeader::TollgateToken => first,
        TokenHeader::Authorization => first.and_then(|value| {
            let (scheme, secret) = value.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then(|| secret.trim_ascii())
        }),
    })
}

fn unauthenticated(headers: &HeaderMap, header: TokenHeader) -> Error {
    let detail = match (headers.contains_key(header.name()), header) {
        (true, _) => "invalid token; send one that is configured in tokens",
        (false, TokenHeader::Authorization) => {
            "a token is required; send it as Authorization: Bearer TOKEN"
        }
        (false, TokenHeader::TollgateToken) => {
            "a token is required; configure the gateway to send it as Tollgate-Token: TOKEN"
        }
    };
    Error::new(ErrorKind::Unauthenticated, detail)
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use tollgate_engine::PeerAddress;

    use super::*;
    use tollgate_config::{Scope, TokenConfig, TokenSecret};

    const OPERATE: &[Scope] = &[Scope::Operate];

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn without_tokens_only_clients_on_this_machine_may_operate() {
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
            for token_header in [TokenHeader::Authorization, TokenHeader::TollgateToken] {
                let peer = peer.parse().map_or(PeerAddress::Unix, PeerAddress::Tcp);
                let remote = Remote::new(peer);
                let principal = find_principal(&access, &remote, &headers, token_header).unwrap();
                let is_authorized = principal.authorize(OPERATE, "reset").is_ok();
                assert_eq!(is_authorized, operates, "{remote} {header:?}");
                assert!(principal.authorize(&[Scope::Check], "check").is_ok());
            }
        }
    }

    #[test]
    fn a_token_is_read_from_its_own_header_only() {
        let token = TokenConfig {
            name: "gateway".to_owned(),
            secret: TokenSecret::Text("s3cret".to_owned()),
            scopes: vec![Scope::Check],
            policies: vec!["*".to_owned()],
        };
        let access = Access::new(&[token]).unwrap();
        let remote = Remote::new(PeerAddress::Tcp("127.0.0.1:1".parse().unwrap()));
        for (pairs, by_authorization, by_tollgate_token) in [
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
            // The forwarded header of the gateway's client changes nothing.
            (&[("authorization", "Bearer client"), ("tollgate-token", "s3cret")], false, true),
        ] {
            let headers = headers(pairs);
            for (token_header, expected) in [
                (TokenHeader::Authorization, by_authorization),
                (TokenHeader::TollgateToken, by_tollgate_token),
            ] {
                let principal = find_principal(&access, &remote, &headers, token_header);
                assert_eq!(principal.is_ok(), expected, "{pairs:?} {token_header:?}");
            }
        }
    }
}

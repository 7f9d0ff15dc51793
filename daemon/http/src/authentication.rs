//! Authentication of HTTP and gRPC requests, by their address and headers.

use hyper::header::{AUTHORIZATION, HeaderMap};
use tokio::time::sleep;
use tollgate_engine::{
    Access, ActiveConfig, Engine, Error, ErrorKind, Principal, Remote, WRONG_TOKEN_DELAY,
};

use super::origin::RequestHead;

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

/// Whether the client of a request may operate; a missing token is not reported. A wrong one is
/// answered late, as by [`authenticate`].
pub async fn is_operator(
    engine: &Engine,
    active: &ActiveConfig,
    remote: &Remote,
    head: RequestHead<'_>,
) -> bool {
    let header = TokenHeader::Authorization;
    let has_credential =
        matches!(secret(head.headers, header), Ok(Some(_))) || remote.certificate.is_some();
    if !active.access.is_open() && !has_credential {
        return false;
    }
    let principal = authenticate(engine, active, remote, head, header).await;
    principal.is_ok_and(Principal::is_operator)
}

/// Authenticates a request. Waits before it rejects a wrong token; the requests of other clients,
/// and other streams of the connection, go on.
///
/// # Errors
/// Tokens are configured, and the request has none, an invalid one, or several.
pub async fn authenticate<'a>(
    engine: &Engine,
    active: &'a ActiveConfig,
    remote: &Remote,
    head: RequestHead<'_>,
    header: TokenHeader,
) -> Result<Principal<'a>, Error> {
    let principal = match find_principal(&active.access, remote, head, header) {
        Ok(principal) => principal,
        Err(error) => {
            engine.report_unauthenticated(remote);
            if matches!(secret(head.headers, header), Ok(Some(_))) {
                // On the heap, because the future of each request would have room for the timer.
                Box::pin(sleep(WRONG_TOKEN_DELAY)).await;
            }
            return Err(error);
        }
    };
    if matches!(principal, Principal::Token(_)) {
        remote.authentication.finish();
    }
    Ok(principal)
}

fn find_principal<'a>(
    access: &'a Access,
    remote: &Remote,
    head: RequestHead<'_>,
    header: TokenHeader,
) -> Result<Principal<'a>, Error> {
    if let Some(principal) = access.anonymous(remote.peer, || head.is_direct()) {
        return Ok(principal);
    }
    let principal = match (secret(head.headers, header)?, &remote.certificate) {
        (Some(secret), _) => access.authenticate(secret),
        (None, Some(certificate)) => access.of_certificate(certificate),
        (None, None) => None,
    };
    principal.ok_or_else(|| unauthenticated(head.headers, header))
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
            let (scheme, secret) = value.split_at_checked("Bearer".len())?;
            let is_separated = matches!(secret.first(), Some(b' ' | b'\t'));
            let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer") && is_separated;
            is_bearer.then(|| secret.trim_ascii())
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
    use hyper::{Method, Uri};

    use tollgate_engine::PeerAddress;

    use super::*;
    use tollgate_config::{Operators, Scope, TokenConfig, TokenSecret};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    /// Whether a client of a daemon without tokens may operate.
    fn operates(operators: Operators, peer: &str, pairs: &[(&'static str, &'static str)]) -> bool {
        let access = Access::default().with_operators(operators);
        let peer = peer.parse().map_or(PeerAddress::Unix, PeerAddress::Tcp);
        let (remote, headers) = (Remote::new(peer), headers(pairs));
        let head = RequestHead::without_target(&headers);
        let [by_client, by_gateway] =
            [TokenHeader::Authorization, TokenHeader::TollgateToken].map(|header| {
                let principal = find_principal(&access, &remote, head, header).unwrap();
                assert!(principal.authorize(&[Scope::Check], "check").is_ok());
                principal.authorize(&[Scope::Operate], "reset").is_ok()
            });
        assert_eq!(by_client, by_gateway);
        by_client
    }

    #[test]
    fn without_tokens_only_unix_sockets_and_by_configuration_loopback_may_operate() {
        for (peer, is_local) in [
            ("127.0.0.1:1", true),
            ("127.8.9.10:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("10.0.0.1:1", false),
            ("[::ffff:10.0.0.1]:1", false),
            ("0.0.0.0:1", false),
        ] {
            assert!(!operates(Operators::Tokens, peer, &[]), "{peer}");
            assert_eq!(operates(Operators::Loopback, peer, &[]), is_local, "{peer}");
        }
        for operators in [Operators::Tokens, Operators::Loopback] {
            assert!(operates(operators, "unix", &[]));
        }
    }

    #[test]
    fn requests_of_proxies_and_browsers_and_for_other_hosts_may_not_operate() {
        for peer in ["127.0.0.1:1", "unix"] {
            for name in [
                "forwarded",
                "via",
                "x-forwarded-for",
                "x-forwarded-proto",
                "x-original-url",
                "x-envoy-internal",
                "x-real-ip",
                "origin",
                "referer",
                "sec-fetch-site",
            ] {
                assert!(!operates(Operators::Loopback, peer, &[(name, "any")]), "{name}");
            }
            for (host, is_this_machine) in [
                ("localhost", true),
                ("LOCALHOST.:80", true),
                ("app.localhost:8080", true),
                ("127.0.0.1:8080", true),
                ("127.1.2.3", true),
                ("[::1]:8080", true),
                ("10.0.0.1", false),
                ("example.com", false),
                ("localhost.example.com", false),
                ("mylocalhost", false),
                ("127.0.0.1.example.com", false),
                ("a b", false),
                ("", false),
            ] {
                let operates = operates(Operators::Loopback, peer, &[("host", host)]);
                assert_eq!(operates, is_this_machine, "{host}");
            }
            let hosts = [("host", "localhost"), ("host", "example.com")];
            assert!(!operates(Operators::Loopback, peer, &hosts));
        }
        let (headers, target) = (HeaderMap::new(), Uri::from_static("http://example.com/v1/reset"));
        assert!(!RequestHead::new(&Method::GET, &target, &headers).is_direct());
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
            (&[("authorization", "Bearer\ts3cret")], true, false),
            (&[("authorization", "Bearers3cret")], false, false),
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
                let head = RequestHead::without_target(&headers);
                let principal = find_principal(&access, &remote, head, token_header);
                assert_eq!(principal.is_ok(), expected, "{pairs:?} {token_header:?}");
            }
        }
    }
}

//! Tokens over gRPC: scopes and policies.

use tonic::Request;

use super::client::{connect, format_result, parse_request};
use super::{config, start};
use crate::http::access::token;
use crate::support::daemon::Daemon;

const LIMITS: &str = "
domain: shop
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 100 } }]
";

async fn call(daemon: &Daemon, authorization: &[&str], request: &str) -> String {
    let mut request = Request::new(parse_request(request));
    for value in authorization {
        request.metadata_mut().append("authorization", value.parse().unwrap());
    }
    format_result(connect(daemon).await.should_rate_limit(request).await)
}

#[tokio::test]
async fn tokens_are_checked_for_scope_and_policy() {
    let mut config = config("", LIMITS);
    config.policies.define("log", "100/min log").unwrap();
    config.tokens = vec![
        token("check", "check", "'*'"),
        token("read", "read", "'*'"),
        token("log", "check", "log"),
        token("shop", "check", "'@envoy.shop'"),
        token("envoy", "check", "'@envoy.*'"),
    ];
    let daemon = Daemon::start_with_config(config).await;
    let (shop, log) = ("shop | user=a", "log | user=a");
    let denied = "PermissionDenied: ";
    for (authorization, request, expected) in [
        (&["Bearer secret-of-check"][..], shop, "OK"),
        (&["bearer secret-of-check"], log, "OK"),
        (&["Bearer secret-of-check"], "unknown | user=a", "OK"),
        (&["Bearer secret-of-shop"], shop, "OK"),
        (&["Bearer secret-of-envoy"], shop, "OK"),
        (&["Bearer secret-of-log"], log, "OK"),
        (&["Bearer secret-of-shop"], log, denied),
        (&["Bearer secret-of-log"], shop, denied),
        (&["Bearer secret-of-read"], shop, denied),
        (&[], shop, "Unauthenticated: a token is required; send it as Authorization: Bearer TOKEN"),
        (&["Bearer nothing"], shop, "Unauthenticated: invalid token; send one that is configured"),
        (&["Basic c2VjcmV0"], shop, "Unauthenticated: "),
        (
            &["Bearer secret-of-check", "Bearer secret-of-check"],
            shop,
            "Unauthenticated: the header authorization occurs twice; send it once",
        ),
        // Authorization is checked before the request.
        (&["Bearer secret-of-read"], "shop", denied),
    ] {
        let response = call(&daemon, authorization, request).await;
        assert!(response.starts_with(expected), "{authorization:?} {request}: {response}");
    }
}

#[tokio::test]
async fn without_configured_tokens_every_client_is_served() {
    let daemon = start("", LIMITS).await;
    for authorization in [&[][..], &["Bearer anything"]] {
        assert!(call(&daemon, authorization, "shop | user=a").await.starts_with("OK"));
    }
}

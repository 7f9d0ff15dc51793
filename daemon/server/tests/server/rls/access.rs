//! Who may ask over gRPC: tokens by scope and policy, as everywhere.

use tonic::Request;

use super::client::{answer_of, connect};
use super::lines::request_of;
use super::{config, start};
use crate::access::token;
use crate::daemon::Daemon;

const LIMITS: &str = "
domain: shop
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 100 } }]
";

async fn ask(daemon: &Daemon, authorization: &[&str], request: &str) -> String {
    let mut asked = Request::new(request_of(request));
    for authorization in authorization {
        asked.metadata_mut().append("authorization", authorization.parse().unwrap());
    }
    answer_of(connect(daemon).await.should_rate_limit(asked).await)
}

#[tokio::test]
async fn a_token_is_for_scopes_and_policies() {
    let mut config = config("", LIMITS);
    config.policies.define("log", "100/min log").unwrap();
    config.tokens = vec![
        token("check", "check", "'*'"),
        token("read", "read", "'*'"),
        token("log", "check", "log"),
        token("shop", "check", "'@envoy.shop'"),
        token("envoy", "check", "'@envoy.*'"),
    ];
    let daemon = Daemon::start_of(config).await;
    let (shop, log) = ("shop | user=a", "log | user=a");
    let lacks = "PermissionDenied: ";
    for (authorization, request, expected) in [
        (&["Bearer secret-of-check"][..], shop, "OK"),
        (&["bearer secret-of-check"], log, "OK"),
        (&["Bearer secret-of-check"], "unknown | user=a", "OK"),
        (&["Bearer secret-of-shop"], shop, "OK"),
        (&["Bearer secret-of-envoy"], shop, "OK"),
        (&["Bearer secret-of-log"], log, "OK"),
        (&["Bearer secret-of-shop"], log, lacks),
        (&["Bearer secret-of-log"], shop, lacks),
        (&["Bearer secret-of-read"], shop, lacks),
        (&[], shop, "Unauthenticated: a token is required; send it as Authorization: Bearer TOKEN"),
        (&["Bearer nothing"], shop, "Unauthenticated: invalid token; send one that is configured"),
        (&["Basic c2VjcmV0"], shop, "Unauthenticated: "),
        (
            &["Bearer secret-of-check", "Bearer secret-of-check"],
            shop,
            "Unauthenticated: the header authorization occurs twice; send it once",
        ),
        // Who may not ask learns nothing of what is wrong with the request.
        (&["Bearer secret-of-read"], "shop", lacks),
    ] {
        let answer = ask(&daemon, authorization, request).await;
        assert!(answer.starts_with(expected), "{authorization:?} {request}: {answer}");
    }
}

#[tokio::test]
async fn without_tokens_whoever_reaches_the_listener_may_ask() {
    let daemon = start("", LIMITS).await;
    for authorization in [&[][..], &["Bearer anything"]] {
        assert!(ask(&daemon, authorization, "shop | user=a").await.starts_with("OK"));
    }
}

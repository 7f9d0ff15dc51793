//! Operations on the rules of a domain, over HTTP and the Redis protocol.

use tollgate_testkit::Folder;

use super::client::{call, connect};
use super::{config, start};
use crate::http::access::token;
use crate::openapi;
use crate::resp::RespClient;
use crate::support::daemon::Daemon;

const LIMITS: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: path
    value: /login
    descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 2 } }]
  - { key: free, rate_limit: { unlimited: true } }
  - { key: closed, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: shared, value: a*, share_threshold: true, rate_limit: { unit: day, requests_per_unit: 2 } }
";

/// Each operation is visible in the answer to Envoy's next request.
#[tokio::test]
async fn operations_take_effect_on_the_next_request() {
    let daemon = start("", LIMITS).await;
    let mut envoy = connect(&daemon).await;
    let mut redis = RespClient::connect(&daemon).await;
    for (entries, descriptor) in [
        ("remote_address=10.0.0.1", "remote_address=10.0.0.1"),
        ("path=/login;user=a%3Bb", "path=/login;user=a%3Bb"),
        ("shared=ab", "shared=ac"),
    ] {
        let request = format!("edge | {}", entries.replace(';', " ").replace("%3B", "b"));
        let descriptor = descriptor.replace("%3B", "b");
        let body = format!(r#""domain":"edge","descriptor":"{descriptor}""#);
        for (operation, http, is_http, expected) in [
            ("penalize", r#","cost":2"#, true, "OVER_LIMIT"),
            ("refund", r#","cost":1"#, true, "OK"),
            ("reset", "", true, "OK"),
            ("block", r#","for":"1h""#, true, "OVER_LIMIT"),
            ("unblock", "", true, "OK"),
            ("PENALIZE", " COST 2", false, "OVER_LIMIT"),
            ("RESET", "", false, "OK"),
            ("BLOCK", "", false, "OVER_LIMIT"),
            ("UNBLOCK", "", false, "OK"),
        ] {
            if is_http {
                let (path, body) = (format!("/v1/{operation}"), format!("{{{body}{http}}}"));
                let response = daemon.post(&path, &body).await;
                openapi::assert_documented("POST", &path, &body, &response);
                response.assert(200, r#""policy":"@envoy.edge""#, &body);
            } else {
                let command = format!("TOLLGATE.{operation} DOMAIN edge {descriptor}{http}");
                let reply = redis.call(&command).await;
                assert!(reply.contains("@envoy.edge"), "{command}: {reply}");
            }
            let response = call(&mut envoy, &request).await;
            assert!(response.starts_with(expected), "{operation} {request}: {response}");
        }
        for operation in ["check", "peek", "inspect"] {
            let body = format!("{{{body}}}");
            let response = daemon.post(&format!("/v1/{operation}?status=200"), &body).await;
            response.assert(200, r#""policy":"@envoy.edge""#, &body);
        }
    }
    let query = "/v1/peek?domain=edge&descriptor=remote_address%3D10.0.0.9";
    let response = daemon.connect().await.get(query).await.unwrap();
    response.assert(200, r#""remaining":2"#, query);
}

#[tokio::test]
async fn a_domain_that_is_a_policy_has_the_keys_of_its_entries() {
    let daemon = Daemon::start_with("policies: { api: { limits: [2/d log] } }").await;
    let body = r#"{"domain":"api","descriptor":"user=7","cost":2}"#;
    daemon.post("/v1/penalize", body).await.assert(200, r#""policy":"api""#, body);
    let response = call(&mut connect(&daemon).await, "api | user=7").await;
    assert!(response.starts_with("OVER_LIMIT"), "{response}");
    let body = r#"{"policy":"api","key":"user=7"}"#;
    daemon.post("/v1/peek", body).await.assert(200, r#""remaining":0"#, body);
}

#[tokio::test]
async fn unknown_domains_and_descriptors_are_errors_that_list_what_exists() {
    let daemon = start("", LIMITS).await;
    let rules = "its rules are remote_address, path_/login.user, free, closed, shared_a*";
    let no_rule = format!(r#"no rule of the domain \"edge\" matches this descriptor; {rules}"#);
    for (fields, status, part) in [
        (
            r#""domain":"edges","descriptor":"a=b""#,
            404,
            r#"no domain \"edges\"; the domains are edge"#,
        ),
        (r#""domain":"edge","descriptor":"a=b""#, 400, &*no_rule),
        (r#""domain":"edge","descriptor":"path=/login""#, 400, "matches this descriptor"),
        (r#""domain":"edge","descriptor":"free=1""#, 400, "is unlimited, and counts nothing"),
        (r#""domain":"edge","descriptor":"closed=1""#, 400, "admits nothing, and counts nothing"),
        (r#""domain":"edge","descriptor":"""#, 400, "descriptor is empty; write its entries"),
        (r#""domain":"edge","descriptor":"=x;a=b""#, 400, r#"\"=x\" has no key; write entries"#),
        (r#""domain":"edge","descriptor":"a=100%""#, 400, "write % as %25"),
        (r#""domain":"edge""#, 400, "descriptor is missing; send both"),
        (r#""descriptor":"a=b""#, 400, "domain is missing; send both"),
        (r#""domain":"edge","descriptor":"a=b","key":"k""#, 400, "key and domain are mutually"),
        (r#""domain":"edge","descriptor":"a=b","tier":"k""#, 400, "tier and domain are mutually"),
    ] {
        let body = format!("{{{fields}}}");
        let response = daemon.post("/v1/block", &body).await;
        response.assert(status, part, fields);
    }
    let mut redis = RespClient::connect(&daemon).await;
    for (command, part) in [
        (
            "TOLLGATE.BLOCK DOMAIN edges a=b",
            "-ERR there is no domain \"edges\"; the domains are edge",
        ),
        ("TOLLGATE.BLOCK DOMAIN edge a=b", "-ERR no rule of the domain \"edge\" matches"),
        ("TOLLGATE.BLOCK DOMAIN edge", "-ERR wrong number of arguments"),
        ("TOLLGATE.TAKE DOMAIN edge a=b", "-ERR tollgate.take takes no DOMAIN"),
        ("TOLLGATE.PEEK DOMAIN edge a=b TIER x", "-ERR DOMAIN and TIER are mutually exclusive"),
    ] {
        let reply = redis.call(command).await;
        assert!(reply.starts_with(part), "{command}: {reply}");
    }
    let none = Daemon::start().await;
    let body = r#"{"domain":"edge","descriptor":"a=b"}"#;
    none.post("/v1/peek", body).await.assert(404, "none is configured; set envoy.config", body);
}

/// The key in a log line can be used as it is.
#[tokio::test]
async fn the_domain_before_a_key_is_accepted() {
    let directory = Folder::create();
    let text = LIMITS.replace("domain: edge", "domain: shop/eu");
    let path = directory.write("limits.yaml", text);
    let daemon =
        Daemon::start_with(&format!("envoy: {{ config: [\"{}\"] }}", path.display())).await;
    let body = r#"{"domain":"shop/eu","descriptor":"=shop/eu;remote_address=10.0.0.1"}"#;
    daemon.post("/v1/block", body).await.assert(200, r#""policy":"@envoy.shop_eu""#, body);
    let response = call(&mut connect(&daemon).await, "shop/eu | remote_address=10.0.0.1").await;
    assert!(response.starts_with("OVER_LIMIT"), "{response}");
}

#[tokio::test]
async fn operations_need_the_scope_and_the_policy_of_the_domain() {
    let mut config = config("", LIMITS);
    config.tokens = vec![
        token("check", "check", "'*'"),
        token("ops", "operate", "'@envoy.edge'"),
        token("other", "operate", "log"),
    ];
    let daemon = Daemon::start_with_config(config).await;
    for (name, domain, descriptor, status) in [
        ("ops", "edge", "remote_address=a", 200),
        ("check", "edge", "remote_address=a", 403),
        ("other", "edge", "remote_address=a", 403),
        // Neither the domains nor their rules are revealed.
        ("other", "edge", "unknown=a", 403),
        ("other", "unknown", "a=b", 403),
    ] {
        let header = format!("authorization: Bearer the-secret-of-{name}");
        let body = format!(r#"{{"domain":"{domain}","descriptor":"{descriptor}"}}"#);
        let response = daemon.post_with("/v1/block", &header, &body).await;
        response.assert(status, "", format_args!("{name} {body}"));
        assert!(!(status == 403 && response.body.contains("remote_address")), "{}", response.body);
    }
}

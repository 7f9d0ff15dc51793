//! The documented statuses, bodies, headers and query values of the gateways.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{DOCUMENT, assert_documented};
use crate::forward_auth::{ForwardedRequest, GATEWAYS, config, rule, send};
use crate::http::access::token;
use crate::support::daemon::Daemon;

pub(super) const PREFIX: &str = "/v1/forward-auth/";

/// The operation of a gateway.
fn operation(gateway: &str) -> &'static Value {
    let mut paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let matches = |path: &str| {
        path.strip_prefix(PREFIX).is_some_and(|path| path.split('/').next() == Some(gateway))
    };
    &paths.find(|(path, _)| matches(path)).unwrap().1["get"]
}

fn parameters(gateway: &str, place: &str) -> impl Iterator<Item = &'static Value> {
    let all = operation(gateway)["parameters"].as_array().unwrap().iter();
    all.filter(move |parameter| parameter["in"] == place)
}

/// The path of an encoded request.
fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

#[test]
fn every_gateway_is_documented() {
    let paths = DOCUMENT["paths"].as_object().unwrap().keys();
    let described: BTreeSet<_> =
        paths.filter_map(|path| path.strip_prefix(PREFIX)?.split('/').next()).collect();
    assert_eq!(described, BTreeSet::from(GATEWAYS));
}

#[tokio::test]
async fn every_documented_status_of_every_gateway_occurs() {
    let mut guarded = config();
    guarded.tokens = vec![token("nothing", "admin", "none"), token("read", "read", "'*'")];
    let guarded = Daemon::start_with_config(guarded).await;
    for gateway in GATEWAYS {
        let open = Daemon::start_with_config(config()).await;
        let has_deny = parameters(gateway, "query").next().is_some();
        let mut statuses = BTreeSet::new();
        for (daemon, target, query, token, status, uri) in [
            (&open, "/login", "", "", 200, ""),
            (&open, "/skip", "", "", 200, ""),
            (&open, "/login", "", "", 429, r##"#quota-exceeded""##),
            (&open, "/deny", "", "", 429, r#"/problems/denied""#),
            (&open, "/deny", "?deny=401", "", 401, r#"/problems/denied""#),
            (&open, "/login", "?deny=403", "", 403, r##"#quota-exceeded""##),
            (&open, "/error", "", "", 500, r#"/problems/no-decision""#),
            (&guarded, "/ip", "", "", 401, r#"/problems/unauthorized""#),
            (&guarded, "/ip", "", "the-secret-of-read", 403, r#"/problems/token-lacks""#),
            (&guarded, "/ip", "", "the-secret-of-nothing", 403, r#"/problems/token-lacks""#),
        ] {
            if !query.is_empty() && !has_deny {
                continue;
            }
            let line = format!("Tollgate-Token: {token}");
            let more = if token.is_empty() { vec![] } else { vec![&*line] };
            let request = ForwardedRequest { query, ..ForwardedRequest::to(target) };
            let request = request.before(&more).encode(gateway);
            let response = send(daemon, &request).await;
            response.assert(status, uri, format_args!("{gateway} {target} {query}"));
            assert_documented("GET", path(&request), "", &response);
            statuses.insert(status.to_string());
        }
        let documented = operation(gateway)["responses"].as_object().unwrap().keys().cloned();
        assert_eq!(statuses, documented.collect(), "{gateway}");
    }
}

/// A required header is needed for every rule, and the others only for rules that use them.
#[tokio::test]
async fn documented_headers_are_read() {
    let mut config = config();
    config.rules.rules.push(rule("/all", &["api {method}:{host}:{ip}"]));
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config.clone()).await;
        let headers: Vec<_> = parameters(gateway, "header").collect();
        assert_eq!(headers.len(), if gateway == "envoy" { 2 } else { 4 }, "{gateway}");
        for header in headers {
            let name = header["name"].as_str().unwrap();
            let is_needed = header["required"] == true;
            for (target, is_used) in [("/listed", is_needed), ("/all", true)] {
                let whole = ForwardedRequest::to(target).before(&["X-Api-Key: k"]).encode(gateway);
                let row = format!("{gateway} {name} {target}");
                send(&daemon, &whole).await.assert(200, "", &row);
                let start = format!("{name}: ");
                let lines = whole.split_inclusive("\r\n").filter(|line| !line.starts_with(&start));
                let request: String = lines.collect();
                assert!(request.len() < whole.len(), "{gateway} {name}");
                let response = send(&daemon, &request).await;
                let status = if is_used { 500 } else { 200 };
                response.assert(status, "", &row);
                assert_eq!(response.body.contains(name), is_used, "{name}: {}", response.body);
                assert_documented("GET", path(&request), "", &response);
            }
        }
    }
}

#[tokio::test]
async fn only_documented_query_values_are_accepted() {
    let daemon = Daemon::start_with_config(config()).await;
    for gateway in GATEWAYS {
        let Some(deny) = parameters(gateway, "query").next() else {
            assert_eq!(gateway, "envoy");
            continue;
        };
        let statuses = deny["schema"]["enum"].as_array().unwrap();
        for status in statuses.iter().map(|status| status.as_str().unwrap()).chain(["200", "503"]) {
            let query = format!("?deny={status}");
            let request = ForwardedRequest { query: &query, ..ForwardedRequest::to("/deny") };
            let request = request.encode(gateway);
            let response = send(&daemon, &request).await;
            let is_allowed = statuses.iter().any(|allowed| allowed == status);
            let expected = if is_allowed { status.parse().unwrap() } else { 500 };
            response.assert(expected, "", format_args!("{gateway} {query}"));
            assert_documented("GET", path(&request), "", &response);
        }
    }
}

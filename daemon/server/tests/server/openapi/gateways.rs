//! What the document says of gateways, provoked: each status in each of its bodies, each header, and
//! each value of the query.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{DOCUMENT, hold};
use crate::access::token;
use crate::daemon::Daemon;
use crate::forward::{DIALECTS, Told, config, rule, send};

pub(super) const PREFIX: &str = "/v1/forward-auth/";

/// The operation of a dialect.
fn operation(dialect: &str) -> &'static Value {
    let mut paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let is_meant = |path: &str| {
        path.strip_prefix(PREFIX).is_some_and(|path| path.split('/').next() == Some(dialect))
    };
    &paths.find(|(path, _)| is_meant(path)).unwrap().1["get"]
}

fn parameters(dialect: &str, place: &str) -> impl Iterator<Item = &'static Value> {
    let all = operation(dialect)["parameters"].as_array().unwrap().iter();
    all.filter(move |x| x["in"] == place)
}

/// The path that is asked, of what `Told::request` makes.
fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

#[test]
fn each_gateway_is_described() {
    let paths = DOCUMENT["paths"].as_object().unwrap().keys();
    let described: BTreeSet<_> =
        paths.filter_map(|path| path.strip_prefix(PREFIX)?.split('/').next()).collect();
    assert_eq!(described, BTreeSet::from(DIALECTS));
}

#[tokio::test]
async fn each_status_of_each_gateway_happens_in_each_of_its_bodies() {
    let mut guarded = config();
    guarded.tokens = vec![token("nothing", "admin", "none"), token("read", "read", "'*'")];
    let guarded = Daemon::start_of(guarded).await;
    for dialect in DIALECTS {
        let open = Daemon::start_of(config()).await;
        let has_deny = parameters(dialect, "query").next().is_some();
        let mut happened = BTreeSet::new();
        for (daemon, target, query, token, status, uri) in [
            (&open, "/login", "", "", 200, ""),
            (&open, "/skip", "", "", 200, ""),
            (&open, "/login", "", "", 429, "#quota-exceeded"),
            (&open, "/deny", "", "", 429, "/problems/denied"),
            (&open, "/deny", "?deny=401", "", 401, "/problems/denied"),
            (&open, "/login", "?deny=403", "", 403, "#quota-exceeded"),
            (&open, "/error", "", "", 500, "/problems/no-decision"),
            (&guarded, "/ip", "", "", 401, "/problems/unauthorized"),
            (&guarded, "/ip", "", "secret-of-read", 403, "/problems/token-lacks"),
            (&guarded, "/ip", "", "secret-of-nothing", 403, "/problems/token-lacks"),
        ] {
            if !query.is_empty() && !has_deny {
                continue;
            }
            let line = format!("Tollgate-Token: {token}");
            let more = if token.is_empty() { vec![] } else { vec![&*line] };
            let request = Told::of(target).request(dialect, query, &[], [&more, &[]]);
            let answer = send(daemon, &request).await;
            assert_eq!(answer.status, status, "{dialect} {target} {query}: {}", answer.body);
            assert!(answer.body.contains(&format!("{uri}\"")) || uri.is_empty(), "{}", answer.body);
            hold("GET", path(&request), "", &answer);
            happened.insert(status.to_string());
        }
        let told = operation(dialect)["responses"].as_object().unwrap().keys().cloned();
        assert_eq!(happened, told.collect(), "{dialect}");
    }
}

/// What must always be there is missed for any rule, and what else is told for one that asks for it.
#[tokio::test]
async fn each_header_that_is_told_is_read() {
    let mut config = config();
    config.rules.rules.push(rule("/all", &["api {method}:{host}:{ip}"]));
    for dialect in DIALECTS {
        let daemon = Daemon::start_of(config.clone()).await;
        let told: Vec<_> = parameters(dialect, "header").collect();
        assert_eq!(told.len(), if dialect == "envoy" { 2 } else { 4 }, "{dialect}");
        for header in told {
            let name = header["name"].as_str().unwrap();
            let is_needed = header["required"] == true;
            for (target, is_asked_for) in [("/listed", is_needed), ("/all", true)] {
                let told = Told::of(target);
                let whole = told.request(dialect, "", &[], [&["X-Api-Key: k"], &[]]);
                let answer = send(&daemon, &whole).await;
                assert_eq!(answer.status, 200, "{dialect} {target}: {}", answer.body);
                let start = format!("{name}: ");
                let lines = whole.split_inclusive("\r\n").filter(|x| !x.starts_with(&start));
                let request: String = lines.collect();
                assert!(request.len() < whole.len(), "{dialect} {name}");
                let answer = send(&daemon, &request).await;
                let status = if is_asked_for { 500 } else { 200 };
                assert_eq!(answer.status, status, "{dialect} {name} {target}: {}", answer.body);
                assert_eq!(answer.body.contains(name), is_asked_for, "{name}: {}", answer.body);
                hold("GET", path(&request), "", &answer);
            }
        }
    }
}

#[tokio::test]
async fn each_value_of_the_query_is_taken_and_no_other() {
    let daemon = Daemon::start_of(config()).await;
    for dialect in DIALECTS {
        let Some(deny) = parameters(dialect, "query").next() else {
            assert_eq!(dialect, "envoy");
            continue;
        };
        let statuses = deny["schema"]["enum"].as_array().unwrap();
        for status in statuses.iter().map(|status| status.as_str().unwrap()).chain(["200", "503"]) {
            let query = format!("?deny={status}");
            let told = Told::of("/deny");
            let request = told.request(dialect, &query, &[], [&[], &[]]);
            let answer = send(&daemon, &request).await;
            let is_taken = statuses.iter().any(|s| s == status);
            let expected = if is_taken { status } else { "500" };
            assert_eq!(answer.status.to_string(), expected, "{dialect} {query}: {}", answer.body);
            hold("GET", path(&request), "", &answer);
        }
    }
}

//! The metrics, as Prometheus and its tool read them.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_server::{FAMILIES, FamilyKind};
use tollgate_testkit::{Folder, Server};

use crate::expressions::{self, Selector};
use crate::process::{Daemon, send};
use crate::promtool::{Prometheus, get, promtool};

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn post(daemon: &Daemon, path: &str, body: &str) {
    let trace = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01");
    let head = format!("POST {path} HTTP/1.1\r\n{trace}");
    let response = send(daemon.address(), &head, body);
    assert!(response.starts_with("HTTP/1.1 "), "{response}");
}

fn page(daemon: &Daemon, accept: &str) -> String {
    let authority = daemon.metrics_url().strip_prefix("http://").unwrap();
    get(authority.strip_suffix("/metrics").unwrap(), "/metrics", accept)
}

/// A daemon that is asked by four at once.
fn under_load(arguments: &[&str], during: impl FnOnce(&Daemon)) {
    let daemon = Daemon::start(arguments);
    std::thread::scope(|scope| {
        let daemon = &daemon;
        for caller in 0..4 {
            scope.spawn(move || {
                for asked in 0..25 {
                    let policy = ["api", "login", "search", "unknown"][asked % 4];
                    let body = format!(r#"{{"policy":"{policy}","key":"{caller}","cost":2}}"#);
                    post(daemon, "/v1/check", &body);
                }
                post(daemon, "/v1/reset", r#"{"policy":"api","key":"k"}"#);
            });
        }
        during(daemon);
    });
    daemon.stop();
}

#[test]
fn promtool_has_nothing_to_say_of_the_page() {
    under_load(&[], |daemon| {
        for _ in 0..3 {
            let (is_content, said) = promtool(&["check", "metrics"], &page(daemon, ""));
            assert!(is_content && said.is_empty(), "{said}");
        }
    });
}

#[test]
fn prometheus_reads_openmetrics_with_exemplars_and_every_expression_of_ours() {
    under_load(&[], |daemon| {
        let authority = daemon.metrics_url().strip_prefix("http://").unwrap();
        let prometheus = Prometheus::start(authority.strip_suffix("/metrics").unwrap());
        // Prometheus asks for OpenMetrics by itself; the classic text has no exemplars.
        prometheus.wait("no exemplar comes through", |prometheu| {
            prometheu.exemplars("tollgate_decision_duration_seconds_bucket").contains(TRACE)
        });
        let kind = prometheus.query("count(tollgate_decisions_total{policy=\"login\"})");
        assert!(kind.contains("\"value\""), "{kind}");
        for (place, expression) in expressions::all() {
            let answer = prometheus.query(&expressions::with_variables(&expression));
            assert!(answer.contains("\"status\":\"success\""), "{place}: {expression}: {answer}");
        }
    });
}

/// The labels of every series on a page, by the name of the series.
fn series(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let selector = Selector::read(line.rsplit_once(' ').unwrap().0);
        all.entry(selector.name).or_default().extend(selector.labels);
    }
    all
}

/// Every series that a daemon on memory and one on a store that goes away show.
fn exposed() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    let daemon = Daemon::start::<[&str; 0]>([]);
    for path in ["/v1/check", "/v1/reset"] {
        post(&daemon, path, r#"{"policy":"api","key":"k"}"#);
    }
    all.extend(series(&page(&daemon, "")));
    daemon.stop();
    let server = Server::start();
    let folder = Folder::create();
    let file = folder.join("tollgate.yaml");
    let text = "policies: { api: { limits: [2/d] } }\nstore: { deadline: 5s }\n";
    std::fs::write(&file, text).unwrap();
    let daemon = Daemon::start(["--config", file.to_str().unwrap(), "--store", &server.url()]);
    let body = r#"{"policy":"api","key":"k"}"#;
    post(&daemon, "/v1/check", body);
    server.kill();
    post(&daemon, "/v1/check", body);
    all.extend(series(&page(&daemon, "")));
    daemon.stop();
    all
}

#[test]
fn dashboard_and_alerts_ask_for_what_there_is_and_everything_there_is_stands_in_the_table() {
    let exposed = exposed();
    // What Prometheus adds to every series.
    let added = ["job", "instance"].map(String::from);
    for (place, expression) in expressions::all() {
        for selector in expressions::selectors(&expression) {
            let labels = match exposed.get(&selector.name) {
                None if selector.name == "up" => &BTreeSet::new(),
                None => panic!("{place}: there is no {}: {expression}", selector.name),
                Some(labels) => labels,
            };
            for label in &selector.labels {
                let is_known = labels.contains(label) || added.contains(label);
                assert!(is_known, "{place}: {} has no {label}: {expression}", selector.name);
            }
        }
    }
    let mut named = BTreeSet::new();
    for family in FAMILIES {
        let is_histogram = family.kind == FamilyKind::Histogram;
        let names: Vec<_> = match is_histogram {
            true => ["_bucket", "_sum", "_count"].map(|x| format!("{}{x}", family.name)).into(),
            false => vec![family.name.to_owned()],
        };
        for name in names {
            let mut labels: BTreeSet<_> =
                family.labels.iter().map(|label| (*label).to_owned()).collect();
            labels.extend(name.ends_with("_bucket").then(|| "le".to_owned()));
            assert_eq!(exposed.get(&name), Some(&labels), "{name}");
            named.insert(name);
        }
    }
    let exposed: BTreeSet<_> = exposed.into_keys().collect();
    assert_eq!(exposed, named);
}

#[test]
fn both_forms_have_the_same_series() {
    let daemon = Daemon::start::<[&str; 0]>([]);
    post(&daemon, "/v1/check", r#"{"policy":"api","key":"k"}"#);
    let (classic, openmetrics) = (page(&daemon, "text/plain"), page(&daemon, OPENMETRICS));
    let without_exemplars: String = openmetrics
        .lines()
        .map(|line| format!("{}\n", line.split(" # {").next().unwrap()))
        .collect();
    assert_eq!(series(&classic), series(&without_exemplars));
    assert!(openmetrics.ends_with("# EOF\n"));
    daemon.stop();
}

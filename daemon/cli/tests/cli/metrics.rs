//! The metrics, as Prometheus and its tool read them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use tollgate_daemon::{FAMILIES, FamilyKind};
use tollgate_testkit::{Folder, Server};

use crate::client::send;
use crate::expressions::{self, Selector};
use crate::operation::wait_for_page;
use crate::process::{Daemon, run, tollgate};
use crate::prometheus::{Prometheus, promtool};

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Sends an operation on a key, without regard to the decision.
fn post(daemon: &Daemon, path: &str, body: &str) {
    let trace = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01");
    send(daemon.address(), &format!("POST {path}"), &[&trace], body);
}

/// The metrics page in the format of the header `Accept`.
pub(crate) fn page(daemon: &Daemon, accept: &str) -> String {
    let accept = format!("Accept: {accept}");
    send(daemon.metrics_address(), "GET /metrics", &[&accept], "").body
}

/// Calls `during` while four clients send requests to a daemon.
fn under_load(during: impl FnOnce(&Daemon)) {
    let daemon = Daemon::start::<[&str; 0]>([]);
    std::thread::scope(|scope| {
        let daemon = &daemon;
        for client in 0..4 {
            scope.spawn(move || {
                for number in 0..25 {
                    let policy = ["api", "login", "search", "unknown"][number % 4];
                    let body = format!(r#"{{"policy":"{policy}","key":"{client}","cost":2}}"#);
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
fn promtool_accepts_the_page_without_a_warning() {
    under_load(|daemon| {
        for _ in 0..3 {
            let (is_success, output) = promtool(&["check", "metrics"], &page(daemon, ""));
            assert!(is_success && output.is_empty(), "{output}");
        }
    });
}

#[test]
fn prometheus_reads_exemplars_and_evaluates_every_expression() {
    under_load(|daemon| {
        let prometheus = Prometheus::start(daemon.metrics_address());
        // Prometheus requests OpenMetrics by default; the classic text has no exemplars.
        prometheus.wait("there is no exemplar", |prometheus| {
            prometheus.exemplars("tollgate_decision_duration_seconds_bucket").contains(TRACE)
        });
        let count = prometheus.query("count(tollgate_decisions_total{policy=\"login\"})");
        assert!(count.contains("\"value\""), "{count}");
        for (name, expression) in expressions::all() {
            let result = prometheus.query(&expressions::with_variables(&expression));
            assert!(result.contains("\"status\":\"success\""), "{name}: {expression}: {result}");
        }
    });
}

/// The labels of all series on a page, by the name of the series.
fn series(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let selector = Selector::parse(line.rsplit_once(' ').unwrap().0);
        all.entry(selector.name).or_default().extend(selector.labels);
    }
    all
}

/// The prefix of the metrics of envoyproxy/ratelimit, which a table of its own describes.
const REFERENCE: &str = "ratelimit_service_";

/// Starts a daemon with this configuration file that serves gRPC as well. Returns also its gRPC address.
fn with_grpc(folder: &Folder, yaml: &str) -> (Daemon, String) {
    let mut command = tollgate();
    command.arg("serve").arg("--config").arg(folder.write("tollgate.yaml", yaml));
    command.args(["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let daemon = Daemon::spawn(command.args(["--resp", "off"]).stderr(Stdio::null()));
    let line = daemon.greeting.lines().find_map(|line| line.trim().strip_prefix("gRPC for Envoy"));
    let address = line.unwrap().trim().strip_prefix("http://").unwrap().to_owned();
    (daemon, address)
}

/// The series of a daemon that compares its decisions with those of another one.
fn exposed_by_comparison() -> BTreeMap<String, BTreeSet<String>> {
    let policy = "policies: { api: { limits: [2/d] } }\n";
    let (old_folder, new_folder) = (Folder::create(), Folder::create());
    let (old, old_grpc) = with_grpc(&old_folder, policy);
    let compare = format!("{policy}envoy: {{ compare: {{ url: \"grpc://{old_grpc}\" }} }}\n");
    let (new, new_grpc) = with_grpc(&new_folder, &compare);
    let target = format!("grpc://{new_grpc}");
    let (code, _, error) = run(["bench", &target, "--policy", "api", "-n", "4", "-c", "1"]);
    assert_eq!(code, 0, "{error}");
    let name = "tollgate_compared_descriptors_total";
    wait_for_page(&new, name, |page| series(page).contains_key(name));
    let all = series(&page(&new, ""));
    new.stop();
    old.stop();
    all
}

/// The series of a daemon in memory, of one with a rule of Envoy's rate limit service, of one whose store
/// becomes unavailable, and of one that compares its decisions.
fn exposed() -> BTreeMap<String, BTreeSet<String>> {
    let body = r#"{"policy":"api","key":"k"}"#;
    let daemon = Daemon::start::<[&str; 0]>([]);
    for path in ["/v1/check", "/v1/reset"] {
        post(&daemon, path, body);
    }
    let mut all = series(&page(&daemon, ""));
    daemon.stop();
    let folder = Folder::create();
    let limits = folder.write(
        "limits.yaml",
        "domain: edge\ndescriptors:\n  - { key: a, descriptors: [{ key: b, rate_limit: \
         { unit: day, requests_per_unit: 1 } }] }\n",
    );
    let yaml = format!(
        "envoy: {{ reference_metrics: true, config: [\"{}\"] }}\npolicies: {{ a: {{ limits: [1/s] }} }}\n",
        limits.display()
    );
    let daemon = Daemon::with_config(&yaml, |command| command);
    for domain in ["edge", "unknown"] {
        let entries = r#"[{"key":"a","value":"1"},{"key":"b","value":"2"}]"#;
        let body = format!(r#"{{"domain":"{domain}","descriptors":[{{"entries":{entries}}}]}}"#);
        post(&daemon, "/json", &body);
    }
    let page_with_rule = page(&daemon, "");
    all.extend(series(&page_with_rule).into_iter().filter(|(name, _)| name.starts_with(REFERENCE)));
    daemon.stop();
    let server = Server::start();
    let yaml = "policies: { api: { limits: [2/d] } }\nstore: { deadline: 5s }\n";
    let url = server.url();
    let daemon = Daemon::with_config(yaml, |command| command.args(["--store", &url]));
    post(&daemon, "/v1/check", body);
    // It is read from the server after the connection is ready.
    let name = "tollgate_store_node_script_seconds_total";
    wait_for_page(&daemon, name, |page| series(page).contains_key(name));
    server.kill();
    post(&daemon, "/v1/check", body);
    all.extend(series(&page(&daemon, "")));
    daemon.stop();
    let compared = exposed_by_comparison().into_iter();
    all.extend(compared.filter(|(name, _)| name.starts_with("tollgate_compared_")));
    all
}

#[test]
fn exposed_series_equal_the_table_and_contain_those_of_dashboard_and_alerts() {
    let exposed = exposed();
    // Prometheus adds these labels to all series.
    let added = ["job", "instance"].map(String::from);
    for (name, expression) in expressions::all() {
        for selector in expressions::selectors(&expression) {
            let labels = match exposed.get(&selector.name) {
                None if selector.name == "up" => &BTreeSet::new(),
                None => panic!("{name}: there is no {}: {expression}", selector.name),
                Some(labels) => labels,
            };
            for label in &selector.labels {
                let is_known = labels.contains(label) || added.contains(label);
                assert!(is_known, "{name}: {} has no {label}: {expression}", selector.name);
            }
        }
    }
    let mut named = BTreeSet::new();
    for family in FAMILIES {
        let suffixes: &[&str] = match family.kind {
            FamilyKind::Histogram => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        for suffix in suffixes {
            let name = format!("{}{suffix}", family.name);
            let mut labels: BTreeSet<_> =
                family.labels.iter().map(|label| (*label).to_owned()).collect();
            labels.extend(name.ends_with("_bucket").then(|| "le".to_owned()));
            assert_eq!(exposed.get(&name), Some(&labels), "{name}");
            named.insert(name);
        }
    }
    let exposed = exposed.into_keys().filter(|name| !name.starts_with(REFERENCE));
    assert_eq!(exposed.collect::<BTreeSet<_>>(), named);
}

#[test]
fn both_formats_have_the_same_series() {
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

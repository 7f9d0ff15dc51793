//! The outage drill: the alerts that the metrics of a real outage cause, and those that they do not.

use std::collections::BTreeMap;

use tollgate_testkit::{Folder, Server};

use crate::client::send;
use crate::metrics::page;
use crate::process::{Daemon, read_repository};
use crate::prometheus::promtool;

const DOMAIN: &str = "
domain: shop
descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1000 } }]
";

/// The samples of a page, by series.
type Samples = BTreeMap<String, f64>;

fn scrape(daemon: &Daemon) -> Samples {
    let page = page(daemon, "");
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Sends requests of each kind of limit.
fn send_requests(daemon: &Daemon) {
    for key in 0..100 {
        for policy in ["open", "closed"] {
            let body = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
            send(daemon.address(), "POST /v1/check", &[], &body);
        }
        let entry = format!(r#"{{"key":"user","value":"{key}"}}"#);
        let body = format!(r#"{{"domain":"shop","descriptors":[{{"entries":[{entry}]}}]}}"#);
        send(daemon.address(), "POST /json", &[], &body);
    }
}

/// A series with the samples of half an hour without an outage, and of half an hour with one.
#[expect(clippy::float_arithmetic, reason = "the samples of Prometheus")]
fn series(name: &str, [start, healthy, outage]: [f64; 3]) -> String {
    let labels = "job=\"tollgate\",instance=\"a\"";
    let series = match name.split_once('{') {
        Some((name, rest)) => format!("{name}{{{labels},{rest}"),
        None => format!("{name}{{{labels}}}"),
    };
    let family = name.split('{').next().unwrap();
    let is_counter =
        ["_total", "_count", "_sum", "_bucket"].iter().any(|end| family.ends_with(end));
    let samples = (0..=120).map(|step| {
        let (before, after) = (f64::from(step.min(60)), f64::from(step.max(60) - 60));
        match is_counter {
            true => start + before * (healthy - start) + after * (outage - healthy),
            false if step <= 60 => healthy,
            false => outage,
        }
    });
    let samples: Vec<_> = samples.map(|sample| sample.to_string()).collect();
    format!("      - {{ series: '{series}', values: '{}' }}\n", samples.join(" "))
}

#[test]
fn an_outage_causes_its_alerts_and_no_others() {
    let server = Server::start();
    let domain = server.folder().join("shop.yaml");
    std::fs::write(&domain, DOMAIN).unwrap();
    let yaml = format!(
        "store: {{ url: \"{}\", deadline: 5s }}\nenvoy: {{ config: \"{}\" }}\n\
         policies:\n  open: {{ limits: [1000/d], on_store_error: allow }}\n  \
         closed: {{ limits: [1000/d] }}\n",
        server.url(),
        domain.display()
    );
    let daemon = Daemon::with_config(&yaml, |command| command);
    send_requests(&daemon);
    wait_for_store(&daemon, 1.0);
    let start = scrape(&daemon);
    send_requests(&daemon);
    let healthy = scrape(&daemon);
    server.kill();
    wait_for_store(&daemon, 0.0);
    send_requests(&daemon);
    let outage = scrape(&daemon);
    server.restart();
    wait_for_store(&daemon, 1.0);
    daemon.stop();

    // A series that is new during the outage is absent before.
    let all = outage.iter().map(|(name, value)| {
        let before = |samples: &Samples| samples.get(name).copied().unwrap_or_default();
        series(name, [before(&start), before(&healthy), *value])
    });
    let series: String = all.collect();
    // Slow responses depend on the machine.
    let firing = "count by (alertname) (ALERTS{alertstate=\"firing\",\
                  alertname!=\"TollgateLatencyP99High\"})";
    let sample = |(name, count): (&str, u32)| {
        format!("{{ labels: '{{alertname=\"Tollgate{name}\"}}', value: {count} }}")
    };
    let expected = [("StoreDown", 1), ("DegradedDecisions", 2), ("DecisionErrors", 1)];
    let expected: Vec<_> = expected.into_iter().map(sample).collect();
    let test = format!(
        "rule_files: [rules.yaml]\nevaluation_interval: 30s\ntests:\n  - interval: 30s\n    \
         input_series:\n{series}    promql_expr_test:\n      \
         - {{ expr: '{firing}', eval_time: 29m, exp_samples: [] }}\n      \
         - {{ expr: '{firing}', eval_time: 55m, exp_samples: [{}] }}\n",
        expected.join(", ")
    );
    let folder = Folder::create();
    folder.write("rules.yaml", read_repository("deploy/prometheus/rules.yaml"));
    let test = folder.write("test.yaml", test);
    let (is_success, output) = promtool(&["test", "rules", test.to_str().unwrap()], "");
    assert!(is_success, "{output}");
}

/// Waits until the daemon has noticed that the store is up, or down.
fn wait_for_store(daemon: &Daemon, is_up: f64) {
    while scrape(daemon)["tollgate_store_up"].to_bits() != is_up.to_bits() {
        std::thread::yield_now();
    }
}

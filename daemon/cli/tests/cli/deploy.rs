//! What stands in `deploy/` and in `docs/operations.md`, held against the daemon.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use tollgate_server::{Config, FAMILIES};
use tollgate_testkit::Folder;

use crate::promtool::{deploy, promtool};

fn read(path: &str) -> String {
    fs::read_to_string(deploy(path)).unwrap()
}

#[test]
fn the_alerts_are_right_and_fire_where_they_should() {
    for arguments in [
        &["check", "rules", "rules.yaml"][..],
        &["test", "rules", "rules_test.yaml"],
        &["check", "config", "prometheus.yaml"],
    ] {
        let (is_content, said) = promtool(arguments, "");
        assert!(is_content && said.contains("SUCCESS"), "{arguments:?}: {said}");
    }
}

fn alerts() -> Vec<Value> {
    let rules: Value = serde_norway::from_str(&read("prometheus/rules.yaml")).unwrap();
    rules["groups"][0]["rules"].as_array().unwrap().clone()
}

#[test]
fn every_alert_is_tested_and_says_what_to_do() {
    let manual = read("../docs/operations.md");
    let tests: Value = serde_norway::from_str(&read("prometheus/rules_test.yaml")).unwrap();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        for field in ["for", "expr"] {
            assert!(alert[field].is_string(), "{name} has no {field}");
        }
        assert!(alert["labels"]["severity"].is_string(), "{name}");
        for field in ["summary", "description"] {
            assert!(alert["annotations"][field].is_string(), "{name} has no {field}");
        }
        let runbook = format!("docs/operations.md#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook_url"], *runbook, "{name}");
        assert!(manual.contains(&format!("\n### {name}\n")), "{name} is not in the manual");
        let groups = tests["tests"].as_array().unwrap().iter();
        let tried = groups.flat_map(|group| group["alert_rule_test"].as_array().unwrap());
        let mut tried = tried.filter(|tried| tried["alertname"] == *name);
        assert!(tried.any(|it| it["exp_alerts"].is_array()), "{name} is never shown to fire");
    }
}

#[test]
fn the_manual_has_the_table_of_metrics() {
    let mut table = "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n".to_owned();
    for family in FAMILIES {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels) = (family.name, family.kind.as_str(), labels.join(", "));
        writeln!(table, "| `{name}` | {kind} | {labels} | {} |", family.help).unwrap();
    }
    let manual = read("../docs/operations.md");
    assert!(manual.contains(&table), "docs/operations.md should say\n{table}");
}

#[test]
fn the_dashboard_can_be_loaded_and_reads_the_source_that_is_chosen() {
    let dashboard: Value = serde_json::from_str(&read("grafana/tollgate.json")).unwrap();
    assert_eq!(dashboard["uid"], "tollgate");
    assert!(dashboard["schemaVersion"].is_u64());
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        assert!(panel["description"].is_string(), "{panel}");
        let place = &panel["gridPos"];
        assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{panel}");
    }
    for file in ["dashboards/tollgate.yaml", "datasources/prometheus.yaml"] {
        let text = read(&format!("grafana/provisioning/{file}"));
        let provisioned: Value = serde_norway::from_str(&text).unwrap();
        assert_eq!(provisioned["apiVersion"], 1, "{file}");
    }
}

fn documents(path: &str) -> Vec<Value> {
    let text = read(path);
    let each = serde_norway::Deserializer::from_str(&text);
    each.map(|x| Value::deserialize(x).unwrap()).collect()
}

#[test]
fn the_manifests_fit_together_and_their_configuration_is_one() {
    let all = documents("kubernetes/tollgate.yaml");
    let of_kind = |kind: &str| all.iter().find(|x| x["kind"] == *kind).unwrap();
    for document in &all {
        assert!(document["apiVersion"].is_string() && document["metadata"]["name"] == "tollgate");
    }
    let text = of_kind("ConfigMap")["data"]["tollgate.yaml"].as_str().unwrap();
    let config = Config::from_yaml(text).unwrap();
    assert_eq!(config.policies.iter().count(), 2);
    let pod = &of_kind("Deployment")["spec"]["template"];
    let labels = &pod["metadata"]["labels"];
    for selected in [
        &of_kind("Deployment")["spec"]["selector"]["matchLabels"],
        &of_kind("Service")["spec"]["selector"],
        &of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ] {
        assert_eq!(selected, labels);
    }
    let container = &pod["spec"]["containers"][0];
    for port in of_kind("Service")["spec"]["ports"].as_array().unwrap() {
        let mut named = container["ports"].as_array().unwrap().iter();
        let target = named.find(|named| named["name"] == port["targetPort"]).unwrap();
        assert_eq!(target["containerPort"], port["port"]);
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "http", "{probe}");
    }
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace > config.drain.timeout.as_secs() + 5, "it is killed while it drains");
    let rules: Value = serde_norway::from_str(&read("prometheus/rules.yaml")).unwrap();
    let monitoring = documents("kubernetes/monitoring.yaml");
    assert_eq!(monitoring[1]["spec"], rules, "PrometheusRule is not the rules");
}

#[test]
fn systemd_takes_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return eprintln!("systemd-analyze is not here: the unit is not verified");
    }
    let folder = Folder::create();
    let unit = folder.join("tollgate.service");
    // The program that it names is not installed here.
    let program = env!("CARGO_BIN_EXE_tollgate");
    let text = read("systemd/tollgate.service").replace("/usr/local/bin/tollgate", program);
    fs::write(&unit, text).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !said.contains("tollgate.service"), "{said}");
}

//! The files in `deploy/` and `docs/operations.md` match the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use tollgate_daemon::{Config, FAMILIES};
use tollgate_testkit::Folder;

use crate::go::GoProgram;
use crate::process::{output, read_repository, repository, run};
use crate::prometheus::promtool;

/// The documents of a YAML file.
pub(crate) fn documents(path: &str) -> Vec<Value> {
    let text = read_repository(path);
    let documents = serde_norway::Deserializer::from_str(&text);
    documents.map(|document| Value::deserialize(document).unwrap()).collect()
}

/// The alerting rules.
pub(crate) fn alerts() -> Vec<Value> {
    let rules = documents("deploy/prometheus/rules.yaml").remove(0);
    let groups = rules["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn promtool_accepts_the_alerts_and_their_tests() {
    for arguments in [
        &["check", "rules", "rules.yaml"][..],
        &["test", "rules", "rules_test.yaml"],
        &["check", "config", "prometheus.yaml"],
    ] {
        let (is_success, output) = promtool(arguments, "");
        assert!(is_success && output.contains("SUCCESS"), "{arguments:?}: {output}");
    }
}

#[test]
fn every_alert_has_a_test_and_a_runbook() {
    let manual = read_repository("docs/operations.md");
    let tests = documents("deploy/prometheus/rules_test.yaml").remove(0);
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        for field in ["for", "expr"] {
            assert!(alert[field].is_string(), "{name} has no {field}");
        }
        assert!(alert["labels"]["severity"].is_string(), "{name}");
        for field in ["summary", "description"] {
            assert!(alert["annotations"][field].is_string(), "{name} has no {field}");
        }
        let runbook =
            format!("https://docs.example.com/tollgate/operations.md#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook_url"], *runbook, "{name}");
        assert!(manual.contains(&format!("\n### {name}\n")), "{name} is not in the manual");
        let groups = tests["tests"].as_array().unwrap().iter();
        let tests = groups.flat_map(|group| group["alert_rule_test"].as_array().unwrap());
        let mut tests = tests.filter(|test| test["alertname"] == *name);
        assert!(tests.any(|test| test["exp_alerts"].is_array()), "no test of {name} fires");
    }
}

#[test]
fn manual_contains_the_table_of_metrics() {
    let mut table = "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n".to_owned();
    for family in FAMILIES {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels) = (family.name, family.kind.as_str(), labels.join(", "));
        writeln!(table, "| `{name}` | {kind} | {labels} | {} |", family.help).unwrap();
    }
    let manual = read_repository("docs/operations.md");
    assert!(manual.contains(&table), "docs/operations.md must contain\n{table}");
}

#[test]
fn dashboard_is_valid_and_uses_the_selected_data_source() {
    let dashboard: Value =
        serde_json::from_str(&read_repository("deploy/grafana/tollgate.json")).unwrap();
    assert_eq!(dashboard["uid"], "tollgate");
    assert!(dashboard["schemaVersion"].is_u64());
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        assert!(panel["description"].is_string(), "{panel}");
        let position = &panel["gridPos"];
        let right = position["x"].as_u64().unwrap() + position["w"].as_u64().unwrap();
        assert!(right <= 24, "{panel}");
    }
    for file in ["dashboards/tollgate.yaml", "datasources/prometheus.yaml"] {
        let provisioned = documents(&format!("deploy/grafana/provisioning/{file}"));
        assert_eq!(provisioned[0]["apiVersion"], 1, "{file}");
    }
}

#[test]
fn manifests_are_consistent_and_their_configuration_is_valid() {
    let all = documents("deploy/kubernetes/tollgate.yaml");
    let of_kind = |kind: &str| all.iter().find(|document| document["kind"] == *kind).unwrap();
    let text = of_kind("ConfigMap")["data"]["tollgate.yaml"].as_str().unwrap();
    // The Helm chart has the same one; its other objects are compared if Helm is installed.
    assert_eq!(documents("deploy/helm/tollgate/values.yaml")[0]["config"], *text);
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
    for service in all.iter().filter(|document| document["kind"] == "Service") {
        assert_eq!(&service["spec"]["selector"], labels);
        for port in service["spec"]["ports"].as_array().unwrap() {
            let mut ports = container["ports"].as_array().unwrap().iter();
            let target = ports.find(|target| target["name"] == port["targetPort"]).unwrap();
            assert_eq!(target["containerPort"], port["port"]);
        }
    }
    // The dashboard is reached by port forwarding only.
    assert!(!config.listen.admin.is_exposed(), "{}", config.listen.admin);
    let scaled = &of_kind("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"];
    assert_eq!(*scaled, of_kind("Deployment")["metadata"]["name"]);
    let policy = of_kind("NetworkPolicy")["spec"]["ingress"].to_string();
    for name in ["http", "grpc", "metrics"] {
        assert!(policy.contains(&format!("\"port\":\"{name}\"")), "no ingress for {name}");
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "http", "{probe}");
    }
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace > config.drain.timeout.as_secs() + 5, "the pod is killed while it drains");
    let rules = &documents("deploy/prometheus/rules.yaml")[0];
    let monitoring = documents("deploy/kubernetes/monitoring.yaml");
    assert_eq!(monitoring[1]["spec"], *rules, "PrometheusRule differs from rules.yaml");
}

#[test]
fn ratelimit_manifest_has_known_variables_and_valid_limits() {
    let all = documents("deploy/kubernetes/ratelimit.yaml");
    let of_kind = |kind: &str| all.iter().find(|document| document["kind"] == *kind).unwrap();
    let pod = &of_kind("Deployment")["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    let (_, known, _) = run(["ratelimit", "--variables"]);
    let mut value = BTreeMap::new();
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        assert!(known.contains(name), "{name} is not in {known}");
        value.insert(name, variable["value"].as_str().unwrap_or_default());
    }
    // RUNTIME_APPDIRECTORY is `config` by default.
    let path = format!("{}/{}/config", value["RUNTIME_ROOT"], value["RUNTIME_SUBDIRECTORY"]);
    assert_eq!(container["volumeMounts"][0]["mountPath"], *path);
    for selected in [
        &of_kind("Deployment")["spec"]["selector"]["matchLabels"],
        &of_kind("Service")["spec"]["selector"],
        &of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ] {
        assert_eq!(*selected, pod["metadata"]["labels"]);
    }
    let folder = Folder::create();
    folder.write("edge.yaml", of_kind("ConfigMap")["data"]["edge.yaml"].as_str().unwrap());
    let config = folder.write("tollgate.yaml", "envoy: { config: edge.yaml }\n");
    let (code, _, error) = run(["config", "check", config.to_str().unwrap()]);
    assert_eq!((code, &*error), (0, ""));
}

/// Decodes a manifest with the types of Kubernetes. Returns whether it is valid, and the kinds or
/// errors; `None` without Go.
pub(crate) fn decode_manifest(file: &Path) -> Option<(bool, String)> {
    let decoder = GoProgram::compile("daemon/cli/tests/cli/manifests")?;
    let (code, printed, errors) = output(decoder.command().arg(file), b"");
    Some((code == 0, printed + &errors))
}

#[test]
fn manifests_have_the_fields_of_the_kubernetes_api() {
    for name in ["tollgate", "ratelimit"] {
        let file = format!("deploy/kubernetes/{name}.yaml");
        let Some((is_valid, output)) = decode_manifest(&repository(&file)) else { return };
        assert!(is_valid, "{file}: {output}");
        assert_eq!(output.lines().count(), documents(&file).len(), "{output}");
    }
    let text = read_repository("deploy/kubernetes/tollgate.yaml");
    let other = Folder::create();
    let wrong = other.write("wrong.yaml", text.replace("minReplicas", "minReplica"));
    let Some((is_valid, output)) = decode_manifest(&wrong) else { return };
    assert!(!is_valid && output.contains("unknown field \"spec.minReplica\""), "{output}");
}

#[test]
fn images_have_a_version() {
    let mut count = 0;
    let documents = ["Dockerfile", "kubernetes/tollgate.yaml", "kubernetes/ratelimit.yaml"]
        .map(|file| read_repository(&format!("deploy/{file}")));
    for line in documents.iter().flat_map(|text| text.lines()) {
        let line = line.trim();
        let Some(image) = line.strip_prefix("FROM ").or_else(|| line.strip_prefix("image: "))
        else {
            continue;
        };
        let image = image.split_whitespace().next().unwrap();
        let (_, named) = image.rsplit_once('/').unwrap_or(("", image));
        // Distroless images have the version of Debian in their name, and no tags by version.
        let (_, tag) = named.split_once(':').unwrap_or((named, ""));
        let has_version = named.contains(|c: char| c.is_ascii_digit());
        assert!(!matches!(tag, "" | "latest") && has_version, "{image}: add a version as its tag");
        count += 1;
    }
    assert_eq!(count, 5, "images in deploy/");
}

#[test]
fn systemd_accepts_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: systemd-analyze is not installed");
    }
    let folder = Folder::create();
    // The program of the unit is not installed.
    let program = env!("CARGO_BIN_EXE_tollgate");
    let text = read_repository("deploy/systemd/tollgate.service");
    let unit = folder.write("tollgate.service", text.replace("/usr/local/bin/tollgate", program));
    let mut command = Command::new("systemd-analyze");
    let (code, _, error) = output(command.arg("verify").arg(&unit), b"");
    assert!(code == 0 && !error.contains("tollgate.service"), "{error}");
}

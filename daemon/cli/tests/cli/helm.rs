//! The chart of `deploy/helm` renders the manifests of `deploy/kubernetes`.
//!
//! `cargo xtask test --peers` compiles Helm; without it the tests are skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use tollgate_testkit::Folder;

use crate::deploy::{decode_manifest, documents};
use crate::process::{output, repository};

/// Helm with arguments; `None` if it is not installed.
fn helm(arguments: &[&str]) -> Option<(bool, String)> {
    let tools = std::fs::read_dir(repository("target/tools")).ok()?;
    let mut tools = tools.map(|tool| tool.unwrap().path());
    let is_helm = |tool: &PathBuf| tool.file_name().unwrap().to_string_lossy().starts_with("helm@");
    let Some(tool) = tools.find(is_helm) else {
        eprintln!("SKIPPED: Helm is not installed; cargo xtask test --peers compiles it");
        return None;
    };
    let home = Folder::create();
    let mut command = Command::new(tool.join("helm"));
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(name, home.path());
    }
    let (code, printed, errors) = output(command.args(arguments), b"");
    Some((code == 0, if code == 0 { printed } else { errors }))
}

fn chart() -> String {
    repository("deploy/helm/tollgate").to_str().unwrap().to_owned()
}

/// The rendered chart with values as `name=value`; the error otherwise.
fn render(release: &str, values: &[&str]) -> Option<Result<String, String>> {
    let chart = chart();
    let mut arguments = vec!["template", release, &chart];
    for value in values {
        arguments.extend(["--set", value]);
    }
    let (is_success, text) = helm(&arguments)?;
    Some(if is_success { Ok(text) } else { Err(text) })
}

/// The objects by kind and name.
fn objects(documents: Vec<Value>) -> BTreeMap<String, Value> {
    let documents = documents.into_iter().filter(|document| !document.is_null());
    let named = documents.map(|document| {
        let name = format!("{} {}", document["kind"], document["metadata"]["name"]);
        (name, document)
    });
    named.collect()
}

fn parse(text: &str) -> BTreeMap<String, Value> {
    let documents = serde_norway::Deserializer::from_str(text);
    objects(documents.map(|document| Value::deserialize(document).unwrap()).collect())
}

#[test]
fn chart_renders_the_manifests() {
    for (manifests, values) in [
        (&["tollgate"][..], &[][..]),
        (&["ratelimit"], &["serve=false", "ratelimit.enabled=true"]),
        (
            &["tollgate", "ratelimit", "monitoring"],
            &["ratelimit.enabled=true", "monitoring.enabled=true"],
        ),
    ] {
        let Some(rendered) = render("tollgate", values) else { return };
        let rendered = parse(&rendered.unwrap());
        let files = manifests.iter().map(|name| format!("deploy/kubernetes/{name}.yaml"));
        let expected = objects(files.flat_map(|file| documents(&file)).collect());
        assert_eq!(rendered.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, object) in &expected {
            assert_eq!(&rendered[name], object, "{name}");
        }
    }
}

#[test]
fn chart_has_no_findings() {
    let Some((is_success, output)) = helm(&["lint", "--strict", &chart()]) else { return };
    assert!(is_success && output.contains("0 chart(s) failed"), "{output}");
}

#[test]
fn values_change_the_objects() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let image = format!("image.digest={digest}");
    let values = [
        &*image,
        "image.pullPolicy=Always",
        "imagePullSecrets[0].name=registry",
        "ports.resp=6380",
        "autoscaling.enabled=false",
        "autoscaling.minReplicas=3",
        "networkPolicy.enabled=false",
        "podDisruptionBudget.enabled=false",
        "restartOnConfigChange=true",
        "secretName=keys",
        "nodeSelector.disk=ssd",
        "podLabels.team=edge",
        "monitoring.enabled=true",
        "ratelimit.enabled=true",
        "ratelimit.env[0].name=LOG_LEVEL,ratelimit.env[0].value=info",
    ];
    let Some(rendered) = render("edge", &values) else { return };
    let text = rendered.unwrap();
    assert!(text.contains("job=\"edge\"") && !text.contains("job=\"tollgate\""), "the job's name");
    // The operator's resources have no Go types here.
    let core: Vec<_> = text.split("\n---\n").filter(|part| !part.contains("coreos")).collect();
    let folder = Folder::create();
    if let Some((is_valid, output)) =
        decode_manifest(&folder.write("rendered.yaml", core.join("\n---\n")))
    {
        assert!(is_valid, "{output}");
    }
    let objects = parse(&text);
    let deployment = &objects["\"Deployment\" \"edge\""]["spec"];
    assert_eq!(deployment["replicas"], 3);
    let pod = &deployment["template"];
    assert_eq!(pod["metadata"]["labels"]["team"], "edge");
    let checksum = pod["metadata"]["annotations"]["checksum/config"].as_str().unwrap();
    assert_eq!(checksum.len(), 64, "{checksum}");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["image"], format!("tollgate@{digest}"));
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["ports"][3]["containerPort"], 6380);
    assert_eq!(pod["spec"]["imagePullSecrets"][0]["name"], "registry");
    assert_eq!(pod["spec"]["nodeSelector"]["disk"], "ssd");
    assert_eq!(pod["spec"]["volumes"][1]["secret"]["secretName"], "keys");
    assert_eq!(objects["\"Service\" \"edge\""]["spec"]["ports"][2]["port"], 6380);
    let env = &objects["\"Deployment\" \"ratelimit\""]["spec"]["template"]["spec"]["containers"][0]
        ["env"];
    assert!(env.to_string().contains("LOG_LEVEL"), "{env}");
    for kind in ["HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget"] {
        assert!(!text.contains(kind), "{kind}");
    }
}

#[test]
fn unknown_and_invalid_values_are_rejected() {
    for (value, part) in [
        ("autoscale.enabled=true", "autoscale"),
        ("image.digest=latest", "digest"),
        ("ports.http=0", "http"),
        ("ratelimit.replicas=none", "replicas"),
    ] {
        let Some(rendered) = render("tollgate", &[value]) else { return };
        let error = rendered.unwrap_err();
        assert!(error.contains(part), "{value}: {error}");
    }
}

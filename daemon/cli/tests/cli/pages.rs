//! The pages in `docs/`: examples run, links resolve, and the index links every page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tollgate_testkit::{ClientKind, Reply, Server};

use crate::process::{Daemon, output, page_block, read_repository, repository};

/// Whether a value has these fields; a list has these items.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| value.get(name).is_some_and(|value| contains(value, part))),
        (Value::Array(value), Value::Array(part)) => {
            value.len() == part.len()
                && value.iter().zip(part).all(|(value, part)| contains(value, part))
        }
        _ => value == part,
    }
}

/// Runs the examples of a section on a daemon with its configuration, and compares the responses with
/// those that it shows. Returns the operations.
fn run_http_examples(page: &str, heading: &str) -> BTreeSet<String> {
    let page = read_repository(page);
    let (_, examples) = page.split_once(heading).unwrap();
    let (examples, _) = examples.split_once("\n## ").unwrap();
    let config = page_block(&format!("`config`{examples}"), "config");
    let daemon = Daemon::with_config(&config, |command| command);
    let mut operations = BTreeSet::new();
    for example in examples.split("```sh\n").skip(1) {
        let (line, rest) = example.split_once("\n```").unwrap();
        let expected: Value =
            serde_json::from_str(&page_block(&format!("`json`{rest}"), "json")).unwrap();
        let (code, response, error) = output(
            Command::new("sh").args(["-c", &line.replace("127.0.0.1:8080", daemon.address())]),
            b"",
        );
        assert_eq!((code, &*error), (0, ""), "{line}");
        let response: Value = serde_json::from_str(&response).unwrap();
        assert!(contains(&response, &expected), "{line}\nreturned {response}");
        let (_, path) = line.split_once("/v1/").unwrap();
        operations.insert(path.split(' ').next().unwrap().to_owned());
    }
    operations
}

#[test]
fn http_examples_have_the_shown_responses() {
    if Command::new("curl").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: curl is not installed");
    }
    let settled = run_http_examples("docs/recipes.md", "\n## LLM tokens");
    assert_eq!(settled, ["check", "settle"].map(str::to_owned).into());
    let logins = run_http_examples("docs/recipes.md", "\n## Failed logins");
    assert_eq!(logins, settled);
    let bans = run_http_examples("docs/recipes.md", "\n## Ban an address");
    assert_eq!(bans, ["inspect".to_owned()].into());
    let users = run_http_examples("docs/recipes.md", "\n## Find the users behind an address");
    assert_eq!(users, ["check", "inspect"].map(str::to_owned).into());
    let operations = run_http_examples("docs/http-api.md", "### Examples\n");
    let api: Value = serde_json::from_str(&read_repository("docs/openapi.json")).unwrap();
    for (path, methods) in api["paths"].as_object().unwrap() {
        let name = path.strip_prefix("/v1/").filter(|name| !name.contains('/'));
        let Some(name) = name.filter(|_| methods.get("post").is_some()) else { continue };
        assert!(operations.contains(name), "docs/http-api.md has no example of {name}");
    }
}

#[test]
fn uninstall_deletes_the_keys_of_the_namespace_and_no_others() {
    if ClientKind::RedisCli.command().is_none() {
        return;
    }
    let server = Server::start();
    let others = ["other", "tollgate2:a:user", "a tollgate:b"];
    // Clients choose the last part of a name.
    let own = [
        "tollgate:a:user",
        "tollgate:a:user other",
        "tollgate:a:\"",
        "tollgate:{tollgate.3}:a:x\ny",
    ];
    for name in others.iter().chain(&own) {
        assert_eq!(server.command(&["SET", name, "v"]), Reply::ok());
    }
    let page = read_repository("docs/upgrade.md");
    let (_, uninstall) = page.split_once("## Uninstall").unwrap();
    let script = page_block(uninstall, "tollgate");
    let script = script.replace("redis-cli", &format!("redis-cli -p {}", server.port()));
    let (code, _, error) = output(Command::new("sh").args(["-c", &script]), b"");
    assert_eq!((code, &*error), (0, ""));
    for name in own {
        assert_eq!(server.command(&["EXISTS", name]), Reply::Integer(0), "{name}");
    }
    for name in others {
        assert_eq!(server.command(&["EXISTS", name]), Reply::Integer(1), "{name}");
    }
}

#[test]
fn filter_of_istio_has_the_parts_of_the_recipe() {
    let page = read_repository("docs/gateways/envoy-ratelimit.md");
    let (_, recipe) = page.split_once("\n`envoy.yaml`").unwrap();
    let recipe: Value =
        serde_norway::from_str(&page_block(&format!("`envoy.yaml`{recipe}"), "envoy.yaml"))
            .unwrap();
    let (_, istio) = page.split_once("### Istio").unwrap();
    let istio: Value = serde_norway::from_str(&page_block(istio, "EnvoyFilter")).unwrap();
    let value = |kind: &str| {
        let patches = istio["spec"]["configPatches"].as_array().unwrap();
        let patch = patches.iter().find(|patch| patch["applyTo"] == kind);
        patch.unwrap_or_else(|| panic!("no {kind}"))["patch"]["value"].clone()
    };
    let named = |list: &Value, name: &str| {
        let list = list.as_array().unwrap();
        list.iter().find(|entry| entry["name"] == name).unwrap().clone()
    };
    let resources = &recipe["static_resources"];
    let manager = &resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
    let filter = named(&manager["http_filters"], "envoy.filters.http.ratelimit");
    assert_eq!(value("HTTP_FILTER"), filter);
    let mut cluster = named(&resources["clusters"], "tollgate");
    let endpoint = &mut cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"];
    endpoint["address"]["socket_address"]["address"] =
        "tollgate-grpc.NAMESPACE.svc.cluster.local".into();
    assert_eq!(value("CLUSTER"), cluster);
    let host = &manager["route_config"]["virtual_hosts"][0];
    assert_eq!(value("VIRTUAL_HOST")["rate_limits"], host["rate_limits"]);
}

/// The Markdown files in a folder and its folders.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
    files.chain(folders.iter().flat_map(|folder| markdown(folder))).collect()
}

/// The files that the relative links of a page name.
fn links(page: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(page).unwrap();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap());
    let files = files.filter(|file| !file.is_empty() && !file.contains("://"));
    files.map(|file| page.parent().unwrap().join(file)).collect()
}

#[test]
fn links_resolve_and_the_index_names_every_page() {
    let docs = repository("docs");
    let index: BTreeSet<_> =
        links(&docs.join("README.md")).iter().map(|path| path.canonicalize().unwrap()).collect();
    let pages = markdown(&docs);
    for page in pages.iter().chain([&repository("README.md")]) {
        for link in links(page) {
            assert!(link.exists(), "{}: {} does not exist", page.display(), link.display());
        }
    }
    for page in pages.iter().filter(|page| !page.ends_with("docs/README.md")) {
        let page = page.canonicalize().unwrap();
        assert!(index.contains(&page), "docs/README.md does not link {}", page.display());
    }
}

//! The rules of a configuration, as for a gateway.

use serde_json::json;

use tollgate_testkit::Folder;

use crate::process::run;
use crate::tool::report;

const CONFIG: &str = r#"
policies:
  login: { limits: ["1/min fixed"] }
  api: { limits: ["2/min fixed"], overrides: { 10.0.0.9: ["100/min fixed"] } }
rules:
  - { match: { path: /login }, policy: login, key: "{ip}" }
  - { match: { path: "/api/**" }, policy: api, key: "{ip}" }
"#;

fn line(address: &str, path: &str) -> String {
    format!("{address} - - [20/Nov/2025:12:00:00 +0000] \"GET {path} HTTP/1.1\" 200 5\n")
}

fn lines() -> String {
    let mut text = String::new();
    for (address, path, times) in [
        ("10.0.0.1", "/login", 3),
        ("10.0.0.1", "/api/x", 3),
        ("10.0.0.9", "/api/x", 5),
        ("10.0.0.2", "/else", 4),
    ] {
        text += &line(address, path).repeat(times);
    }
    text
}

#[test]
fn rules_select_the_policies_and_the_key() {
    let folder = Folder::create();
    let config = folder.write("tollgate.yaml", CONFIG);
    let log = folder.write("access.log", lines());
    let arguments = ["--config", config.to_str().unwrap(), "--rules"];
    let plain = report(&log, &arguments);
    assert_eq!(plain["outcomes"][0]["admitted"]["requests"], 1 + 2 + 5);
    assert_eq!(plain["outcomes"][0]["denied"]["requests"], 2 + 1);
    assert_eq!(plain["source"]["unruled"], 4);
    let worst = plain["outcomes"][0]["worst"].as_array().unwrap();
    let policies: Vec<_> = worst.iter().map(|worst| (&worst["policy"], &worst["key"])).collect();
    let address = json!("10.0.0.1");
    assert_eq!(policies, [(&json!("login"), &address), (&json!("api"), &address)]);
    // A sequential replay has the same outcome.
    let decisions = folder.join("decisions");
    let one_by_one = [&arguments[..], &["--decisions", decisions.to_str().unwrap()]].concat();
    let sequential = report(&log, &one_by_one);
    for field in ["admitted", "denied", "keys_denied", "worst", "longest_denial"] {
        assert_eq!(sequential["outcomes"][0][field], plain["outcomes"][0][field], "{field}");
    }
    assert_eq!(std::fs::read_to_string(decisions).unwrap().lines().count(), 11);
}

#[test]
fn checks_of_one_rule_are_decided_atomically() {
    let folder = Folder::create();
    let config = folder.write(
        "tollgate.yaml",
        r#"
policies:
  one: { limits: ["1/min fixed"] }
  all: { limits: ["3/min fixed"] }
rules:
  - checks: [{ policy: one, key: "{ip}" }, { policy: all, key: all }]
"#,
    );
    let text: String =
        ["1", "1", "2", "3", "4"].map(|x| line(&format!("10.0.0.{x}"), "/")).concat();
    let log = folder.write("access.log", text);
    let decisions = folder.join("decisions");
    let config = ["--config", config.to_str().unwrap(), "--rules", "--decisions"];
    let report = report(&log, &[&config[..], &[decisions.to_str().unwrap()]].concat());
    // The second of 10.0.0.1 is denied and charges `all` nothing; the last is denied by `all`.
    assert_eq!(report["outcomes"][0]["admitted"], json!({"requests": 3, "cost": 3}));
    let lines = std::fs::read_to_string(decisions).unwrap();
    let allowed: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["allowed"].clone())
        .collect();
    assert_eq!(allowed, [true, false, true, true, false]);
}

#[test]
fn a_policy_of_a_configuration_has_its_overrides() {
    let folder = Folder::create();
    let config = folder.write("tollgate.yaml", CONFIG);
    let log = folder
        .write("access.log", line("10.0.0.9", "/").repeat(5) + &line("10.0.0.8", "/").repeat(5));
    let arguments =
        ["--config", config.to_str().unwrap(), "--policy", "api", "--limit", "4/min fixed"];
    let report = report(&log, &arguments);
    let admitted = |place: usize| report["outcomes"][place]["admitted"]["requests"].clone();
    assert_eq!((admitted(0), admitted(1)), (json!(8), json!(7)));
}

#[test]
fn the_alternatives_of_a_key_are_counted() {
    let folder = Folder::create();
    let log = folder.write("access.log", lines());
    let arguments = ["--limit", "2/min fixed", "--key", "{header.x-api-key|ip}"];
    for more in [&[][..], &["--decisions", "/dev/null"]] {
        let report = report(&log, &[&arguments[..], more].concat());
        let expected = json!([
            { "name": "header.x-api-key", "lines": 0 },
            { "name": "ip", "lines": 15 },
        ]);
        assert_eq!(report["source"]["key_alternatives"], expected, "{more:?}");
    }
    let (_, printed, _) = run([&["replay", log.to_str().unwrap()][..], &arguments].concat());
    let note = "note: the key is header.x-api-key in 0 lines, ip in 15 lines\n";
    assert!(printed.contains(note), "{printed}");
    let plain = report(&log, &["--limit", "2/min fixed", "--key", "{ip}"]);
    assert!(plain["source"].get("key_alternatives").is_none(), "{plain}");
}

//! `tollgate config`.

use crate::process::{directory, run, tollgate};

#[test]
fn files_are_checked_and_the_first_bad_one_does_not_hide_the_next() {
    let data = directory();
    let path = |name: &str| data.join(name).display().to_string();
    let (good, bad, worse) = (path("good.yaml"), path("bad.yaml"), path("worse.yaml"));
    let rules = "rules: [{ policy: a, key: \"{ip}\" }]\npolicies: { a: { limits: [1/s] } }\n";
    std::fs::write(&good, rules).unwrap();
    std::fs::write(&bad, "policies:\n  a: { limits: [10/month] }\nnamespace: a b\n").unwrap();
    std::fs::write(&worse, "listen: { htpp: off }\n").unwrap();

    let said = format!("{good}: ok: 1 policy, 1 rule\n");
    assert_eq!(run(["config", "check", &good]), (0, said.clone(), String::new()));
    let (code, output, complaint) = run(["config", "check", &bad, &good, &worse]);
    assert_eq!((code, output), (2, said));
    for part in [
        "error: policies.a.limits[0]: in \"10/month\"",
        &format!(
            " --> {bad}:2:16\n  |\n2 |   a: {{ limits: [10/month] }}\n  |                ^^^^^^^^\n"
        ),
        &format!("{bad}: 2 mistakes\n"),
        "error: listen: unknown field \"htpp\"; did you mean \"http\"?\n",
        &format!("{worse}: 1 mistake\n"),
    ] {
        assert!(complaint.contains(part), "{part}\n{complaint}");
    }

    let (code, output, complaint) = run(["config", "check", "-o", "json", &good, &worse]);
    assert_eq!((code, &*complaint), (2, ""));
    let lines: Vec<serde_json::Value> =
        output.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(
        lines[0],
        serde_json::json!({
            "file": good, "ok": true, "policies": 1, "rules": 1, "errors": [], "more": 0,
        })
    );
    assert_eq!(
        lines[1],
        serde_json::json!({
            "file": worse, "ok": false, "more": 0,
            "errors": [{
                "line": 1, "column": 11, "field": "listen",
                "message": "unknown field \"htpp\"; did you mean \"http\"?",
            }],
        })
    );
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn what_it_would_run_with_is_printed_with_its_origins_and_no_secret() {
    let data = directory();
    let file = data.join("tollgate.yaml");
    let yaml = "namespace: shop\ntokens: [{ name: a, token: s3cret, scopes: [check] }]\n";
    std::fs::write(&file, yaml).unwrap();
    let mut command = tollgate();
    command.args(["config", "print", "--origins"]).env("TOLLGATE_CONFIG", &file);
    let output = command.env("TOLLGATE_LIMITS__CHECKS", "4").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let shop = format!("namespace: shop  # {}:1\n", file.display());
    for line in [&*shop, "  checks: 4  # TOLLGATE_LIMITS__CHECKS\n", "  timeout: 20s\n"] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert!(!printed.contains("s3cret"), "{printed}");
    let output = tollgate().args(["config", "print"]).env("TOLLGATE_LOG__LEVEL", "loud").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: log.level: \"loud\": "));
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn the_schema_is_json() {
    let (code, output, complaint) = run(["config", "schema"]);
    assert_eq!((code, &*complaint), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(schema["properties"]["store"]["properties"]["deadline"]["default"], "15ms");
}

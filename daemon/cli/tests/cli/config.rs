//! `tollgate config`.

use tollgate_testkit::Folder;

use crate::process::{run, tollgate};

#[test]
fn every_file_is_checked_after_an_invalid_one() {
    let data = Folder::create();
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
            " --> {bad}:2:17\n  |\n2 |   a: {{ limits: [10/month] }}\n  |                 ^^^^^^^^\n"
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
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
}

#[test]
fn referenced_files_are_checked_by_check_and_serve() {
    let data = Folder::create();
    let (file, csv) = (data.join("tollgate.yaml"), data.join("vip.csv"));
    // Nothing is bound before this is said: else it would be that the port is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let yaml = format!(
        "listen: {{ http: \"{}\" }}\n\
         policies: {{ a: {{ limits: [1/s], overrides_file: vip.csv }} }}\n\
         tokens: [{{ name: a, token_file: none, scopes: [check] }}]\n",
        taken.local_addr().unwrap()
    );
    std::fs::write(&file, yaml).unwrap();
    std::fs::write(&csv, "key,limits\nvip,1/month\n").unwrap();
    let (named, csv) = (file.display().to_string(), csv.display().to_string());
    let (_, _, checked) = run(["config", "check", &named]);
    let mistakes = format!("\n{named}: 2 mistakes\n");
    let report = checked.strip_suffix(&mistakes).unwrap();
    for part in [
        format!("error: policies.a.overrides_file: {csv}:2: limits: "),
        format!("\n --> {named}:2:49\n  |\n2 | policies: "),
        format!("error: tokens[0].token_file: {}/none cannot be read: ", data.display()),
        format!("\n --> {named}:3:33\n"),
    ] {
        assert!(checked.contains(&part), "{part}\n{checked}");
    }
    assert_eq!(run(["serve", "--config", &named]), (2, String::new(), report.to_owned()));

    let (code, output, _) = run(["config", "check", "-o", "json", &named]);
    let verdict: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &verdict["ok"]), (2, &false.into()));
    let error = &verdict["errors"][0];
    assert_eq!(error["field"], "policies.a.overrides_file");
    assert_eq!((&error["line"], &error["column"]), (&2.into(), &49.into()));
    assert_eq!(error["named"], serde_json::json!({ "file": csv, "line": 2, "column": null }));
}

#[test]
fn effective_configuration_is_printed_with_origins_without_secrets() {
    let data = Folder::create();
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
}

#[test]
fn schema_is_json() {
    let (code, output, complaint) = run(["config", "schema"]);
    assert_eq!((code, &*complaint), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(schema["properties"]["store"]["properties"]["deadline"]["default"], "15ms");
}

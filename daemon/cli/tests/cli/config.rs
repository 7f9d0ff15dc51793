//! `tollgate config`.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use tollgate_testkit::Folder;

use crate::operation::wait_for_page;
use crate::process::{Daemon, output, run, tollgate};

#[test]
fn every_file_is_checked_after_an_invalid_one() {
    let folder = Folder::create();
    let [good, bad, worse] = [
        (
            "good.yaml",
            "rules: [{ policy: a, key: \"{ip}\" }]\npolicies: { a: { limits: [1/s] } }\n",
        ),
        ("bad.yaml", "policies:\n  a: { limits: [10/month] }\nnamespace: a b\n"),
        ("worse.yaml", "listen: { htpp: off }\n"),
    ]
    .map(|(name, yaml)| folder.write(name, yaml).display().to_string());

    let line = format!("{good}: ok: 1 policy, 1 rule\n");
    assert_eq!(run(["config", "check", &good]), (0, line.clone(), String::new()));
    let (code, output, error) = run(["config", "check", &bad, &good, &worse]);
    assert_eq!((code, output), (2, line));
    for part in [
        "error: policies.a.limits[0]: in \"10/month\"",
        &format!(
            " --> {bad}:2:17\n  |\n2 |   a: {{ limits: [10/month] }}\n  |                 ^^^^^^^^\n"
        ),
        &format!("{bad}: 2 mistakes\n"),
        "error: listen: unknown field \"htpp\"; did you mean \"http\"?\n",
        &format!("{worse}: 1 mistake\n"),
    ] {
        assert!(error.contains(part), "{part}\n{error}");
    }

    let (code, output, error) = run(["config", "check", "-o", "json", &good, &worse]);
    assert_eq!((code, &*error), (2, ""));
    let lines: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[0],
        json!({
            "file": good, "ok": true, "policies": 1, "rules": 1, "errors": [], "warnings": [],
            "more": 0,
        })
    );
    assert_eq!(
        lines[1],
        json!({
            "file": worse, "ok": false, "warnings": [], "more": 0,
            "errors": [{
                "line": 1, "column": 11, "field": "listen",
                "message": "unknown field \"htpp\"; did you mean \"http\"?",
            }],
        })
    );
}

#[test]
fn referenced_files_are_checked_by_check_and_serve() {
    let folder = Folder::create();
    // The files are checked before a port is bound, so that the used port is not reported.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let yaml = format!(
        "listen: {{ http: \"{}\" }}\n\
         policies: {{ a: {{ limits: [1/s], overrides_file: vip.csv }} }}\n\
         tokens: [{{ name: a, token_file: none, scopes: [check] }}]\n",
        taken.local_addr().unwrap()
    );
    let file = folder.write("tollgate.yaml", yaml).display().to_string();
    let csv = folder.write("vip.csv", "key,limits\nvip,1/month\n").display().to_string();
    let (_, _, checked) = run(["config", "check", &file]);
    let mistakes = format!("\n{file}: 2 mistakes\n");
    let report = checked.strip_suffix(&mistakes).unwrap();
    for part in [
        format!("error: policies.a.overrides_file: {csv}:2: limits: "),
        format!("\n --> {file}:2:49\n  |\n2 | policies: "),
        format!("error: tokens[0].token_file: {}/none cannot be read: ", folder.display()),
        format!("\n --> {file}:3:33\n"),
    ] {
        assert!(checked.contains(&part), "{part}\n{checked}");
    }
    assert_eq!(run(["serve", "--config", &file]), (2, String::new(), report.to_owned()));

    let (code, output, _) = run(["config", "check", "-o", "json", &file]);
    let verdict: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &verdict["ok"]), (2, &false.into()));
    let error = &verdict["errors"][0];
    assert_eq!(error["field"], "policies.a.overrides_file");
    assert_eq!((&error["line"], &error["column"]), (&2.into(), &49.into()));
    assert_eq!(error["named"], json!({ "file": csv, "line": 2, "column": null }));
}

#[test]
fn effective_configuration_is_printed_with_origins_without_secrets() {
    let folder = Folder::create();
    let yaml =
        "namespace: shop\ntokens: [{ name: a, token: s3cret-of-16-bytes, scopes: [check] }]\n";
    let file = folder.write("tollgate.yaml", yaml);
    let mut command = tollgate();
    command.args(["config", "print", "--origins"]).env("TOLLGATE_CONFIG", &file);
    let (code, printed, error) = output(command.env("TOLLGATE_LIMITS__CHECKS", "4"), b"");
    assert_eq!((code, &*error), (0, ""));
    let shop = format!("namespace: shop  # {}:1\n", file.display());
    for line in [&*shop, "  checks: 4  # TOLLGATE_LIMITS__CHECKS\n", "  timeout: 20s\n"] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert!(!printed.contains("s3cret"), "{printed}");
    let mut command = tollgate();
    command.args(["config", "print"]).env("TOLLGATE_LOG__LEVEL", "loud");
    let (code, _, error) = output(&mut command, b"");
    assert_eq!(code, 2);
    assert!(error.starts_with("error: log.level: \"loud\": "), "{error}");
}

#[test]
fn doubtful_settings_cause_warnings_of_check_and_serve() {
    let folder = Folder::create();
    let yaml = "policies: { a: { limits: [1/s] } }\noperators: loopback\n";
    let file = folder.write("tollgate.yaml", yaml).display().to_string();
    let message = "every program on this machine may operate";
    let (code, output, error) = run(["config", "check", &file]);
    assert_eq!((code, output), (0, format!("{file}: ok: 1 policy, 0 rules\n")));
    assert!(error.starts_with(&format!("warning: {file}:2:12: operators: {message}")), "{error}");
    let (_, output, error) = run(["config", "check", "-o", "json", &file]);
    let verdict: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&*error, &verdict["ok"]), ("", &true.into()));
    let warning = &verdict["warnings"][0];
    assert_eq!((&warning["line"], &warning["field"]), (&2.into(), &"operators".into()));
    let daemon = Daemon::with_config(yaml, |command| command.stderr(Stdio::piped()));
    let log = daemon.stop_and_read_log();
    assert!(log.contains(" WARN ") && log.contains(&format!("operators: {message}")), "{log}");
}

#[test]
fn a_key_without_its_braces_causes_a_warning_of_check() {
    let folder = Folder::create();
    let yaml = |key: &str| {
        format!(
            "policies: {{ a: {{ limits: [1/s] }} }}\n\
             rules: [{{ checks: [{{ policy: a, key: '{{ip}}' }}, {{ policy: a, key: {key} }}] }}]\n"
        )
    };
    for (key, is_mistake) in
        [("ip", true), ("header.x-api-key", true), ("everyone", false), ("'a:{ip}'", false)]
    {
        let file = folder.write("tollgate.yaml", yaml(key)).display().to_string();
        let (code, _, error) = run(["config", "check", &file]);
        let warning = format!(
            "warning: {file}:2:66: rules[0].checks[1].key: \"{key}\" is the same key for every \
             request; write \"{{{key}}}\"\n"
        );
        assert_eq!((code, error), (0, if is_mistake { warning } else { String::new() }), "{key}");
    }
}

#[test]
fn an_override_that_matches_no_key_of_a_rule_causes_a_warning_of_check_and_serve() {
    let folder = Folder::create();
    let yaml = "policies: { a: { limits: [1/s], overrides: { vip: [9/s] } } }\n\
                rules: [{ policy: a, key: \"{header.x-api-key|ip}\" }]\n";
    let file = folder.write("tollgate.yaml", yaml).display().to_string();
    let warning = "1:46: policies.a.overrides.vip: no request has this key: keys of rules[0] look \
                   like \"header.x-api-key=…\" or \"ip=…\"; write \"header.x-api-key=vip\", unless \
                   other clients send it\n";
    let (code, output, error) = run(["config", "check", &file]);
    assert_eq!((code, output), (0, format!("{file}: ok: 1 policy, 1 rule\n")));
    assert_eq!(error, format!("warning: {file}:{warning}"));
    let daemon = Daemon::with_config(yaml, |command| command.stderr(Stdio::piped()));
    let log = daemon.stop_and_read_log();
    assert!(log.contains(" WARN ") && log.contains(": policies.a.overrides.vip: no "), "{log}");
}

#[test]
fn limits_that_start_unused_cause_warnings_of_check_and_reload() {
    let folder = Folder::create();
    let yaml = |limit: &str, vip: &str| {
        format!(
            "policies: {{ a: {{ limits: [{limit}, 9/h log], overrides: {{ vip: [{vip}, 90/h log], \
             bot-*: unlimited }} }} }}\n"
        )
    };
    let (kept, changed) = (yaml("20/min fixed", "30/min"), yaml("10/min sliding", "300/min fixed"));
    let file = folder.write("tollgate.yaml", yaml("10/min fixed", "60/min")).display().to_string();
    let new = folder.write("new.yaml", &changed).display().to_string();
    let policy = "policy a: the limit 10/min sliding starts unused for every key, because 10/min \
                  fixed; 9/h log has none of its kind and window";
    let override_ = "policy a, override vip: the limit 300/min fixed starts unused for every key, \
                     because 60/min; 90/h log has none of its kind and window";
    let (code, output, error) = run(["config", "check", &new, "--replaces", &file]);
    assert_eq!((code, output), (0, format!("{new}: ok: 1 policy, 0 rules\n")));
    assert_eq!(error, format!("warning: {policy}\nwarning: {override_}\n"));
    let (_, output, _) = run(["config", "check", &new, "--replaces", &file, "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["warnings"][0]["message"], policy);
    let (code, _, error) = run(["config", "check", &new, "--replaces", "none.yaml"]);
    assert!(code == 2 && error.contains("none.yaml"), "{error}");

    let daemon = Daemon::start_with(|command| command.stderr(Stdio::piped()), ["--config", &file]);
    for (count, text) in [(1, kept), (2, changed)] {
        folder.write("tollgate.yaml", &text);
        // A change during the start would not count as a reload.
        daemon.signal(Signal::HUP);
        let series = format!("\ntollgate_reloads_total{{result=\"success\"}} {count}\n");
        wait_for_page(&daemon, "reload", |page| page.contains(&series));
    }
    let log = daemon.stop_and_read_log();
    let after_kept =
        [policy.replace("10/min fixed", "20/min fixed"), override_.replace("60/min", "30/min")];
    let warnings = log.lines().filter_map(|line| Some(line.split_once(" WARN ")?.1));
    assert!(warnings.eq(after_kept), "{log}");
}

#[test]
fn descriptor_rules_that_start_unused_are_listed() {
    let folder = Folder::create();
    let rules = |user: &str, address: &str| {
        format!(
            "domain: shop\ndescriptors:\n  - {{ key: user, rate_limit: {{ {user} }} }}\n  \
             - {{ key: address, rate_limit: {{ {address} }} }}\n"
        )
    };
    let old = rules("unit: minute, requests_per_unit: 3", "unit: minute, requests_per_unit: 3");
    let new = rules("limit: 3/min sliding", "unit: minute, requests_per_unit: 9");
    let (old_file, new_file) =
        (folder.write("old.yaml", &old), folder.write("new.yaml", new.clone()));
    let (old_file, new_file) = (old_file.display().to_string(), new_file.display().to_string());
    let warning = "rule shop.user: the limit 3/min sliding starts unused for every key, because 3/min \
                   fixed has none of its kind and window";
    let (code, output, error) = run(["config", "check", &new_file, "--replaces", &old_file]);
    assert_eq!((code, output), (0, format!("{new_file}: ok: 1 domain, 2 limits\n")));
    assert_eq!(error, format!("warning: {warning}\n"));

    let limits = folder.write("limits.yaml", &old);
    let config = folder.write(
        "tollgate.yaml",
        "envoy: { config: limits.yaml }\npolicies: { a: { limits: [1/s] } }\n",
    );
    let config = config.display().to_string();
    let daemon =
        Daemon::start_with(|command| command.stderr(Stdio::piped()), ["--config", &config]);
    std::fs::write(limits, new).unwrap();
    daemon.signal(Signal::HUP);
    let series = "\ntollgate_reloads_total{result=\"success\"} 1\n";
    wait_for_page(&daemon, "reload", |page| page.contains(series));
    let log = daemon.stop_and_read_log();
    let warnings: Vec<_> = log.lines().filter_map(|line| line.split_once(" WARN ")).collect();
    assert!(warnings.len() == 1 && warnings[0].1 == warning, "{log}");
}

#[test]
fn listeners_that_others_reach_without_a_token_cause_warnings() {
    let folder = Folder::create();
    folder.write("token", "9b1f62c5d07e41aa");
    let open =
        "listen: { http: 0.0.0.0:0, grpc: '[::]:0', resp: example.com:0, metrics: 0.0.0.0:0 }\n";
    let closed = "listen: { http: '[::1]:0', grpc: localhost:0, resp: unix:r, metrics: off }\n";
    let tokens = "tokens: [{ name: a, token_file: token, scopes: [check] }]\n";
    for (yaml, fields) in [
        (open.to_owned(), &["1:17: listen.http", "1:34: listen.grpc", "1:50: listen.resp"][..]),
        (closed.to_owned(), &[]),
        (format!("{open}{tokens}"), &[]),
    ] {
        let file = folder.write("tollgate.yaml", &yaml).display().to_string();
        let (code, _, error) = run(["config", "check", &file]);
        let warnings: Vec<_> = error.lines().filter(|line| line.contains("listen.")).collect();
        assert_eq!((code, warnings.len()), (0, fields.len()), "{error}");
        for (warning, field) in warnings.iter().zip(fields) {
            assert!(warning.starts_with(&format!("warning: {file}:{field}: every client that ")));
            assert!(warning.contains("; configure tokens or listen.tls.client_ca, "), "{warning}");
        }
    }
}

#[test]
fn schema_is_json() {
    let (code, output, error) = run(["config", "schema"]);
    assert_eq!((code, &*error), (0, ""));
    let schema: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(schema["properties"]["store"]["properties"]["deadline"]["default"], "15ms");
}

const DOMAIN: &str = "
domain: shop
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: path, rate_limit: { unit: day, requests_per_unit: 9 } }
";

#[test]
fn files_and_directories_of_envoyproxy_ratelimit_are_checked() {
    let folder = Folder::create();
    let file = folder.write("limits.yaml", DOMAIN).display().to_string();
    let line = |path: &str| format!("{path}: ok: 1 domain, 2 limits\n");
    assert_eq!(run(["config", "check", &file]), (0, line(&file), String::new()));
    let directory = folder.display().to_string();
    assert_eq!(run(["config", "check", &directory]), (0, line(&directory), String::new()));
    let skipped = folder.write("more", DOMAIN.replace("shop", "more")).display().to_string();
    let warning = format!(
        "warning: {skipped} is skipped: its name does not end in .yaml or .yml; rename it\n"
    );
    assert_eq!(run(["config", "check", &directory]), (0, line(&directory), warning));
    let (_, output, _) = run(["config", "check", "-o", "json", &directory]);
    let verdict: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&verdict["domains"], &verdict["limits"]), (&1.into(), &2.into()), "{output}");
    let message = verdict["warnings"][0]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("{skipped} is skipped")), "{message}");

    let wrong = DOMAIN.replace("unit: day", "unit: dayz").replace("shop", "wrong");
    let wrong = folder.write("wrong.yaml", wrong).display().to_string();
    for path in [&wrong, &directory] {
        let (code, output, error) = run(["config", "check", path]);
        assert_eq!((code, &*output), (2, ""));
        let expected = format!("error: {wrong}:4: invalid rate limit unit 'dayz'\n");
        assert!(error.starts_with(&expected), "{error}");
    }
    let yaml = format!("envoy: {{ config: \"{file}\" }}\n");
    let config = folder.write("tollgate.yml", yaml).display().to_string();
    let line = format!("{config}: ok: 0 policies, 0 rules, 1 domain, 2 limits\n");
    assert_eq!(run(["config", "check", &config]), (0, line, String::new()));
}

//! The same requests in every format, plain and compressed, from files and standard input.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use tollgate_testkit::Folder;

use crate::tool::{report, run, tollgate};

const COMMON: &str = r#"10.0.0.1 - - [20/Nov/2025:12:00:00 +0000] "GET /a HTTP/1.1" 200 5
10.0.0.1 - ada [20/Nov/2025:12:00:00 +0000] "GET /b HTTP/1.1" 200 5
2001:db8::1 - - [20/Nov/2025:13:00:01 +0100] "POST /a?x=1 HTTP/2.0" 429 -
2001:db8::2 - - [20/Nov/2025:12:00:01 +0000] "GET /a HTTP/1.1" 200 5
"#;

fn combined() -> String {
    COMMON.lines().map(|line| format!("{line} \"-\" \"curl/8.5\"\n")).collect()
}

const JSON: &str = r#"{"time":"2025-11-20T12:00:00Z","remote_addr":"10.0.0.1","request":"GET /a HTTP/1.1"}
{"time":"2025-11-20T12:00:00.5Z","remote_addr":"10.0.0.1","request":"GET /b HTTP/1.1"}
{"time":1763640001,"remote_addr":"2001:db8::1","request":"POST /a?x=1 HTTP/2.0"}
{"time":1763640001.5,"remote_addr":"2001:db8::2","request":"GET /a HTTP/1.1"}
"#;

const CSV: &str = "time,key\n\
    2025-11-20T12:00:00Z,10.0.0.1\n1763640000.5,10.0.0.1\n\
    1763640001,2001:db8::/64\n1763640001.500000,2001:db8::/64\n";

fn deflated(text: &str) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap()
}

/// Every other request is denied: two keys make two requests each, half a second apart.
fn check(report: &Value, name: &str) {
    let outcome = &report["outcomes"][0];
    assert_eq!(report["keys"], 2, "{name}: {report}");
    assert_eq!(outcome["admitted"], json!({"requests": 2, "cost": 2}), "{name}");
    assert_eq!(outcome["denied"], json!({"requests": 2, "cost": 2}), "{name}");
    assert_eq!(report["source"]["first"], 1_763_640_000, "{name}");
    assert_eq!(report["source"]["last"], json!(1_763_640_001.5), "{name}");
}

#[test]
fn the_same_requests_have_the_same_outcome_in_every_format() {
    let folder = Folder::create();
    let gz = deflated(&combined());
    for (name, content) in [
        ("common.log", COMMON.as_bytes()),
        ("combined.log", combined().as_bytes()),
        ("log.json", JSON.as_bytes()),
        ("log.csv", CSV.as_bytes()),
        ("by-its-content.gz", COMMON.as_bytes()),
        ("combined.log.gz", &gz),
        ("named-otherwise", &gz),
    ] {
        let log = folder.write(name, content);
        check(&report(&log, &["--limit", "1/s"]), name);
    }
}

#[test]
fn several_files_are_one_log() {
    let folder = Folder::create();
    let (first, second) = COMMON.split_at(COMMON.find("2001").unwrap());
    let first = folder.write("access.log.1", first);
    let second = folder.write("access.log", second);
    let report = report(&first, &[second.to_str().unwrap(), "--limit", "1/s"]);
    check(&report, "both");
    assert_eq!(report["source"]["names"].as_array().unwrap().len(), 2);
}

#[test]
fn standard_input_can_be_a_log() {
    let mut child = tollgate()
        .args(["-", "--limit", "1/s", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(COMMON.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    check(&serde_json::from_slice(&output.stdout).unwrap(), "-");
}

#[test]
fn fields_units_and_keys_can_be_set() {
    let folder = Folder::create();
    let log = folder.write(
        "log.json",
        "{\"at\":1763640000000,\"client\":{\"key\":\"k1\"},\"weight\":3}\n\
         {\"at\":1763640000001,\"client\":{\"key\":\"k1\"},\"weight\":3}\n",
    );
    let fields = ["--field", "time=at", "--field", "header.x-api-key=client.key"];
    let rest = ["--field", "cost=weight", "--time-unit", "ms", "--limit", "5/min fixed"];
    let key = ["--key", "api:{header.x-api-key}"];
    let report = report(&log, &[&fields[..], &rest, &key].concat());
    let worst = &report["outcomes"][0]["worst"][0];
    assert_eq!((&worst["key"], &worst["denied"]["cost"]), (&json!("api:k1"), &json!(3)));
}

/// The keys of a block are stored contiguously; this once made their total length the length of a
/// key.
#[test]
fn many_keys_are_not_one_long_key() {
    let folder = Folder::create();
    let mut text = String::from("time,key,ip\n");
    for number in 0..10_000 {
        text += &format!("1763640000.{number:06},a-key-of-some-length-{number},10.0.0.1\n");
    }
    let log = folder.write("log.csv", text);
    for more in [&["--limit", "1/s"][..], &["--limit", "1/s", "--key", "{ip}"]] {
        let report = report(&log, more);
        assert_eq!(
            (&report["source"]["broken"], &report["offered"]["requests"]),
            (&json!(0), &json!(10_000))
        );
    }
    let long = folder.write("long.csv", format!("time,key\n1,{}\n2,b\n", "x".repeat(70_000)));
    assert_eq!(report(&long, &["--limit", "1/s"])["source"]["broken"], 1);
}

#[test]
fn a_verb_in_json_is_the_method_unless_verbs_are_enabled() {
    let folder = Folder::create();
    let line = r#"{"time":1763640000,"ip":"10.0.0.1","verb":"GET","request_id":"one"}"#;
    let log = folder.write("log.json", format!("{line}\n{line}\n"));
    let decisions = folder.join("decisions");
    for more in [&[][..], &["--decisions", decisions.to_str().unwrap()]] {
        let arguments = ["--limit", "1/min fixed", "--key", "{method}:{ip}"];
        let report = report(&log, &[&arguments[..], more].concat());
        assert_eq!(report["outcomes"][0]["worst"][0]["key"], "GET:10.0.0.1");
        assert_eq!(report["outcomes"][0]["denied"]["requests"], 1);
    }
    let log = folder.write("log.json", line.replace("GET", "block") + "\n" + line + "\n");
    let (_, output, _) = run([log.to_str().unwrap(), "--limit", "1/min fixed", "--verbs"]);
    assert!(output.contains("1 of 2 lines could not be read"), "{output}");
}

#[test]
fn invalid_lines_are_reported_and_fatal_only_if_strict() {
    let folder = Folder::create();
    let text = format!("{COMMON}\u{1b}[2J no line\n\n{COMMON}");
    let log = folder.write("access.log", text);
    let (code, output, error) = run([log.to_str().unwrap(), "--limit", "1/s"]);
    assert_eq!((code, &*error), (0, ""), "{output}");
    assert!(output.contains("1 of 9 lines could not be read"), "{output}");
    assert!(!output.contains('\u{1b}'), "{output}");
    let (code, output, error) = run([log.to_str().unwrap(), "--limit", "1/s", "--strict"]);
    assert_eq!((code, &*output), (2, ""));
    assert!(error.contains("access.log:5: "), "{error}");
    assert!(!error.contains('\u{1b}'), "{error}");
}

#[test]
fn times_of_whole_seconds_are_spread_by_default() {
    let folder = Folder::create();
    let log = folder.write("access.log", COMMON);
    // Half a second apart both are admitted, at the same moment only one.
    let spread = report(&log, &["--limit", "2/s burst 1"]);
    assert_eq!(spread["outcomes"][0]["denied"]["requests"], 0);
    assert_eq!(spread["source"]["spread"], true);
    // Exact times are unchanged and not reported.
    let log_of_csv = folder.write("log.csv", "time,key\n1763640000,a\n1763640000,a\n");
    let unchanged = report(&log_of_csv, &["--limit", "2/s burst 1"]);
    assert_eq!(unchanged["outcomes"][0]["denied"]["requests"], 1);
    assert_eq!(unchanged["source"]["spread"], false);
    let exact = report(&log, &["--limit", "2/s burst 1", "--stamps", "exact"]);
    assert_eq!(exact["outcomes"][0]["denied"]["requests"], 2);
}

#[test]
fn a_truncated_file_is_reported_up_to_its_end() {
    let folder = Folder::create();
    let whole = deflated(&COMMON.repeat(100_000));
    let log = folder.write("access.log.gz", &whole[..whole.len() / 2]);
    let (code, output, error) = run([log.to_str().unwrap(), "--limit", "1/s", "-o", "json"]);
    assert_eq!(code, 2);
    assert!(error.contains("access.log.gz"), "{error}");
    let report: Value = serde_json::from_str(&output).unwrap();
    assert!(report["source"]["lines"].as_u64().unwrap() > 100_000, "{report}");
    assert!(report["source"]["failed"].as_str().unwrap().contains("access.log.gz"), "{report}");
}

#[test]
fn reports_mask_passwords() {
    let folder = Folder::create();
    let log = folder.write("log.csv", CSV);
    let rules = "tollgate on >secret ~replay-* +@all";
    let server = tollgate_testkit::Server::with(|config| config.user(rules));
    let url = server.url_as("tollgate", "secret");
    let page = folder.join("r.html");
    let valkey = url.replacen("redis", "valkey", 1);
    for store in [&["--store", &url][..], &["--store", &valkey], &[&format!("--store={url}")]] {
        let rest = ["--limit", "1/s", "--report", page.to_str().unwrap(), "-o", "json"];
        let (code, output, error) = run([&[log.to_str().unwrap()], store, &rest].concat());
        assert_eq!((code, &*error), (0, ""));
        let page = std::fs::read_to_string(&page).unwrap();
        for text in [&output, &page] {
            assert!(text.contains("tollgate:***@"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

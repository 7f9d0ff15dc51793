//! The same requests in every format, plain and compressed, from files and from standard input.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::process::{Directory, report, run, tollgate};

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

/// Every other request is denied: two keys ask twice each, half a second apart.
fn hold(report: &Value, name: &str) {
    let outcome = &report["outcomes"][0];
    assert_eq!(report["keys"], 2, "{name}: {report}");
    assert_eq!(outcome["admitted"], json!({"requests": 2, "cost": 2}), "{name}");
    assert_eq!(outcome["denied"], json!({"requests": 2, "cost": 2}), "{name}");
    assert_eq!(report["source"]["first"], 1_763_640_000, "{name}");
    assert_eq!(report["source"]["last"], json!(1_763_640_001.5), "{name}");
}

#[test]
fn the_same_requests_are_the_same_in_every_format() {
    let directory = Directory::new();
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
        let log = directory.file(name, content);
        hold(&report(&log, &["--limit", "1/s"]), name);
    }
}

#[test]
fn several_files_follow_each_other() {
    let directory = Directory::new();
    let (first, second) = COMMON.split_at(COMMON.find("2001").unwrap());
    let first = directory.file("access.log.1", first);
    let second = directory.file("access.log", second);
    let report = report(&first, &[second.to_str().unwrap(), "--limit", "1/s"]);
    hold(&report, "both");
    assert_eq!(report["source"]["names"].as_array().unwrap().len(), 2);
}

#[test]
fn standard_input_is_a_log_too() {
    let mut child = tollgate()
        .args(["-", "--limit", "1/s", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(COMMON.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    hold(&serde_json::from_slice(&output.stdout).unwrap(), "-");
}

#[test]
fn names_of_fields_units_and_keys_are_the_users_to_say() {
    let directory = Directory::new();
    let log = directory.file(
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

/// The keys of a block lie one behind the other, and were once taken together for one that is too long.
#[test]
fn many_keys_are_no_long_key() {
    let directory = Directory::new();
    let mut text = String::from("time,key,ip\n");
    for number in 0..10_000 {
        text += &format!("1763640000.{number:06},a-key-of-some-length-{number},10.0.0.1\n");
    }
    let log = directory.file("log.csv", text);
    for more in [&["--limit", "1/s"][..], &["--limit", "1/s", "--key", "{ip}"]] {
        let report = report(&log, more);
        assert_eq!(
            (&report["source"]["broken"], &report["offered"]["requests"]),
            (&json!(0), &json!(10_000))
        );
    }
    let long = directory.file("long.csv", format!("time,key\n1,{}\n2,b\n", "x".repeat(70_000)));
    assert_eq!(report(&long, &["--limit", "1/s"])["source"]["broken"], 1);
}

#[test]
fn a_verb_in_json_is_the_method_unless_it_is_said_to_be_ours() {
    let directory = Directory::new();
    let line = r#"{"time":1763640000,"ip":"10.0.0.1","verb":"GET","request_id":"one"}"#;
    let log = directory.file("log.json", format!("{line}\n{line}\n"));
    let decisions = directory.path("decisions");
    for more in [&[][..], &["--decisions", decisions.to_str().unwrap()]] {
        let arguments = ["--limit", "1/min fixed", "--key", "{method}:{ip}"];
        let report = report(&log, &[&arguments[..], more].concat());
        assert_eq!(report["outcomes"][0]["worst"][0]["key"], "GET:10.0.0.1");
        assert_eq!(report["outcomes"][0]["denied"]["requests"], 1);
    }
    let log = directory.file("log.json", line.replace("GET", "block") + "\n" + line + "\n");
    let (_, output, _) = run([log.to_str().unwrap(), "--limit", "1/min fixed", "--verbs"]);
    assert!(output.contains("1 of 2 lines could not be read"), "{output}");
}

#[test]
fn broken_lines_are_counted_and_shown_and_fatal_only_if_strict() {
    let directory = Directory::new();
    let text = format!("{COMMON}\u{1b}[2J no line\n\n{COMMON}");
    let log = directory.file("access.log", text);
    let (code, output, complaint) = run([log.to_str().unwrap(), "--limit", "1/s"]);
    assert_eq!((code, &*complaint), (0, ""), "{output}");
    assert!(output.contains("1 of 9 lines could not be read"), "{output}");
    assert!(!output.contains('\u{1b}'), "{output}");
    let (code, output, complaint) = run([log.to_str().unwrap(), "--limit", "1/s", "--strict"]);
    assert_eq!((code, &*output), (2, ""));
    assert!(complaint.contains("access.log:5: "), "{complaint}");
    assert!(!complaint.contains('\u{1b}'), "{complaint}");
}

#[test]
fn stamps_of_whole_seconds_are_spread_unless_they_are_exact() {
    let directory = Directory::new();
    let log = directory.file("access.log", COMMON);
    // Half a second apart there is room for both; in the same moment there is not.
    let spread = report(&log, &["--limit", "2/s burst 1"]);
    assert_eq!(spread["outcomes"][0]["denied"]["requests"], 0);
    assert_eq!(spread["source"]["spread"], true);
    // Times that are told in full are taken as they are, and nothing is said of them.
    let log_of_csv = directory.file("log.csv", "time,key\n1763640000,a\n1763640000,a\n");
    let told = report(&log_of_csv, &["--limit", "2/s burst 1"]);
    assert_eq!(told["outcomes"][0]["denied"]["requests"], 1);
    assert_eq!(told["source"]["spread"], false);
    let exact = report(&log, &["--limit", "2/s burst 1", "--stamps", "exact"]);
    assert_eq!(exact["outcomes"][0]["denied"]["requests"], 2);
}

#[test]
fn what_was_read_before_a_file_broke_off_is_told() {
    let directory = Directory::new();
    let whole = deflated(&COMMON.repeat(100_000));
    let log = directory.file("access.log.gz", &whole[..whole.len() / 2]);
    let (code, output, complaint) = run([log.to_str().unwrap(), "--limit", "1/s", "-o", "json"]);
    assert_eq!(code, 2);
    assert!(complaint.contains("access.log.gz"), "{complaint}");
    let report: Value = serde_json::from_str(&output).unwrap();
    assert!(report["source"]["lines"].as_u64().unwrap() > 100_000, "{report}");
    assert!(report["source"]["failed"].as_str().unwrap().contains("access.log.gz"), "{report}");
}

#[test]
fn a_report_does_not_tell_passwords() {
    let directory = Directory::new();
    let log = directory.file("log.csv", CSV);
    let rules = "tollgate on >not-told ~replay-* +@all";
    let server = tollgate_testkit::Server::with(|x| x.user(rules));
    let url = server.url_as("tollgate", "not-told");
    let page = directory.path("r.html");
    for store in [&["--store", &url][..], &[&format!("--store={url}")]] {
        let rest = ["--limit", "1/s", "--report", page.to_str().unwrap(), "-o", "json"];
        let (code, output, complaint) = run([&[log.to_str().unwrap()], store, &rest].concat());
        assert_eq!((code, &*complaint), (0, ""));
        let page = std::fs::read_to_string(&page).unwrap();
        for text in [&output, &page] {
            assert!(text.contains("tollgate:***@"), "{text}");
            assert!(!text.contains("not-told"), "{text}");
        }
    }
}

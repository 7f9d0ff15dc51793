//! `tollgate check`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use tollgate_testkit::Folder;

use crate::process::{Daemon, run, tollgate};

/// A limit that recovers in no test's time.
const SLOW: &str = "2/366d log";

/// Asks a daemon; exit code, line.
fn ask(daemon: &Daemon, arguments: &[&str]) -> (i32, String) {
    let asked = ["check", "--url", &daemon.url].into_iter().chain(arguments.iter().copied());
    let (code, line, complaint) = run(asked);
    assert_eq!(complaint, "");
    (code, line)
}

#[test]
fn decision_is_one_line_and_an_exit_code() {
    let daemon = Daemon::start([SLOW]);
    let rows: &[(&[&str], i32, &str)] = &[
        (&["default", "a", "--peek"], 0, "✓ allowed  a  default  2/366d log  2 left\n"),
        (&["default", "a"], 0, "✓ allowed  a  default  2/366d log  1 left\n"),
        (&["default", "a", "--cost", "0"], 0, "✓ allowed  a  default  2/366d log  1 left\n"),
        (&["default", "a"], 0, "✓ allowed  a  default  2/366d log  0 left\n"),
        (&["default", "b", "--cost", "2"], 0, "✓ allowed  b  default  2/366d log  0 left\n"),
        (
            &["default", "c", "--cost", "3"],
            1,
            "✗ denied  c  default  2/366d log  2 left  never: a cost of 3 is above 2\n",
        ),
        (&["1/366d", "d"], 0, "✓ allowed  d  1/366d  0 left\n"),
        (&["1/h queue 2", "e"], 0, "✓ allowed  e  1/h queue 2  2 left\n"),
        (&["default", "\x1b[2J"], 0, "✓ allowed  \\u{1b}[2J  default  2/366d log  1 left\n"),
    ];
    for (arguments, code, line) in rows {
        assert_eq!(ask(&daemon, arguments), (*code, (*line).to_owned()), "{arguments:?}");
    }
    let (code, line) = ask(&daemon, &["default", "a"]);
    assert_eq!(code, 1);
    let seconds = line.strip_prefix("✗ denied  a  default  2/366d log  0 left  again in ");
    let seconds = seconds.and_then(|seconds| seconds.strip_suffix("s\n")).unwrap();
    let whole: u32 = seconds.split('.').next().unwrap().parse().unwrap();
    assert!((31_000_000..31_622_400).contains(&whole), "{line}");
    daemon.stop();
}

#[test]
fn flag_explain_shows_each_limit() {
    let daemon = Daemon::start(["2/366d log; 5/366d fixed from-first"]);
    let (code, text) = ask(&daemon, &["default", "a", "--cost", "2", "--explain"]);
    let mut lines = text.lines();
    assert_eq!((code, lines.next()), (0, Some("✓ allowed  a  default  2/366d log  0 left")));
    for (line, beginning, end) in [
        (lines.next(), "  5/366d fixed from-first: admits; 2 of 5 used, all of it back in ", "s"),
        (lines.next(), "  2/366d log: admits; 2 of 2 used, all of it back in ", "s  (binding)"),
    ] {
        let line = line.unwrap();
        assert!(line.starts_with(beginning) && line.ends_with(end), "{line}");
    }
    assert_eq!(lines.next(), None);
    let (code, text) = ask(&daemon, &["default", "a", "--explain"]);
    assert_eq!(code, 1);
    assert!(text.contains("  2/366d log: denies for 316"), "{text}");
    daemon.stop();
}

#[test]
fn json_output_is_the_daemons_response() {
    let daemon = Daemon::start([SLOW]);
    let (code, json) = ask(&daemon, &["default", "a", "-o", "json"]);
    assert_eq!(code, 0);
    assert!(json.starts_with(r#"{"allowed":true,"reason":"limit","policy":"default""#), "{json}");
    assert!(json.ends_with("]}\n") && json.lines().count() == 1, "{json}");
    daemon.stop();
}

#[test]
fn key_may_be_any_bytes() {
    let daemon = Daemon::start([SLOW]);
    let key = OsStr::from_bytes(b"\xff\x01");
    for (left, code) in [("1 left", 0), ("0 left", 0), ("0 left", 1)] {
        let asked = ["check".as_ref(), "default".as_ref(), key, "--url".as_ref()];
        let (exited, line, _) = run(asked.into_iter().chain([daemon.url.as_ref()]));
        assert_eq!(exited, code, "{line}");
        assert!(line.contains(left), "{line}");
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_asked_exits_with_2_and_says_why() {
    let daemon = Daemon::start([SLOW]);
    let url = &daemon.url;
    let unreachable = "http://127.0.0.1:1";
    for (arguments, complaint) in [
        (
            vec!["defualt", "a", "--url", url],
            "there is no policy \"defualt\"; did you mean \"default\"?",
        ),
        (
            vec!["10/s burts 3", "a", "--url", url],
            "unknown word \"burts\"; did you mean \"burst\"?",
        ),
        (vec!["default", "", "--url", url], "the key is empty; write a key"),
        (vec!["=2/s", "a", "--url", url], "neither a policy's name"),
        (vec!["default", "a", "--cost", "1.0", "--url", url], "invalid value '1.0'"),
        (vec!["default", "a", "--cost", "9007199254740992", "--url", url], "is too large"),
        (vec!["default", "a", "--url", unreachable], "start one with `tollgate serve`"),
        (vec!["default", "a", "--url", "127.0.0.1"], "write it as http://127.0.0.1:8080"),
        (vec!["default", "a", "--url", "https://127.0.0.1"], "write it as http://127.0.0.1:8080"),
        (
            vec!["default", "a", "--tier", "pro", "--url", url],
            "policy \"default\" has no tier \"pro\"; it has no tiers",
        ),
        (vec!["2/s", "a", "--tier", "pro", "--url", url], "a limit has no tiers"),
        (vec!["default"], "required arguments were not provided"),
    ] {
        let (code, line, said) = run(["check"].iter().chain(&arguments));
        assert_eq!((code, &*line), (2, ""), "{arguments:?}");
        assert!(said.starts_with("error: ") && said.contains(complaint), "{arguments:?}: {said}");
    }
    daemon.stop();
}

#[test]
fn data_directory_decides_without_a_daemon() {
    let data = Folder::create();
    let data = data.to_str().unwrap();
    let unreachable = "http://127.0.0.1:1";
    let asked = ["check", SLOW, "a", "--url", unreachable, "--data", data];
    for (code, line) in [
        (0, "✓ allowed  a  2/366d log  1 left\n"),
        (0, "✓ allowed  a  2/366d log  0 left\n"),
        (1, "✗ denied  a  2/366d log  0 left  again in "),
    ] {
        let (exited, said, complaint) = run(asked);
        assert_eq!((exited, &*complaint), (code, ""));
        assert!(said.starts_with(line), "{said}");
    }
    let (code, said, _) = run(asked.iter().chain(&["--peek"]));
    assert!(code == 1 && said.starts_with("✗ denied"), "{said}");
    let sample = ["check", "login", "a", "--url", unreachable, "--data", data];
    assert_eq!(run(sample).0, 0);
    let file = format!("{data}/tollgate.yaml");
    std::fs::write(&file, "policies: { mine: { limits: [1/366d log] } }").unwrap();
    let mine = ["check", "mine", "a", "--url", unreachable, "--data", data, "--config", &file];
    assert_eq!(run(mine).0, 0);
    assert_eq!(run(mine).0, 1);
}

#[test]
fn data_directory_of_a_running_daemon_is_rejected() {
    let data = Folder::create();
    let daemon = Daemon::start([SLOW, "--data", data.to_str().unwrap()]);
    let unreachable = "http://127.0.0.1:1";
    let asked = ["check", SLOW, "a", "--url", unreachable, "--data", data.to_str().unwrap()];
    let (code, _, complaint) = run(asked);
    assert_eq!(code, 2);
    assert!(complaint.contains("is in use by another process"), "{complaint}");
    daemon.stop();
    assert_eq!(run(asked).0, 0);
}

#[test]
fn closed_output_is_no_error() {
    let daemon = Daemon::start([SLOW]);
    for code in [0, 0, 1] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut asked = tollgate();
        asked.args(["check", "default", "a", "--url", &daemon.url]);
        let ended = asked.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(ended.status.code(), Some(code));
        assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
    }
    daemon.stop();
}

#[test]
fn environment_variable_sets_the_url() {
    let daemon = Daemon::start([SLOW]);
    let mut asked = tollgate();
    let asked = asked.args(["check", "default", "a"]).env("TOLLGATE_URL", &daemon.url);
    assert_eq!(asked.output().unwrap().status.code(), Some(0));
    daemon.stop();
}

//! `tollgate check`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use tollgate_testkit::Folder;

use crate::process::{Daemon, output, run, tollgate};

/// A URL at which no daemon listens.
const UNREACHABLE: &str = "http://127.0.0.1:1";
/// A limit that does not recover during a test.
const SLOW: &str = "2/366d log";

/// Checks with a daemon. Returns the exit code and the output.
fn check(daemon: &Daemon, arguments: &[&str]) -> (i32, String) {
    let (code, output, error) = run([&["check", "--url", &daemon.url], arguments].concat());
    assert_eq!(error, "");
    (code, output)
}

#[test]
fn decision_is_one_line_and_an_exit_code() {
    let daemon = Daemon::start([SLOW]);
    let peek = || run(["peek", "--url", &daemon.url, "default", "a"]);
    for _ in 0..2 {
        let (code, output, error) = peek();
        assert_eq!((code, &*output), (0, "✓ allowed  a  default  2/366d log  2 left\n"));
        assert!(error.starts_with("hint: nothing is counted for this key"), "{error}");
    }
    let rows: &[(&[&str], i32, &str)] = &[
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
        assert_eq!(check(&daemon, arguments), (*code, (*line).to_owned()), "{arguments:?}");
    }
    let (code, line) = check(&daemon, &["default", "a"]);
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
    let (code, text) = check(&daemon, &["default", "a", "--cost", "2", "--explain"]);
    let mut lines = text.lines();
    assert_eq!((code, lines.next()), (0, Some("✓ allowed  a  default  2/366d log  0 left")));
    for (line, beginning, end) in [
        (lines.next(), "  5/366d fixed from-first: admits; 2 of 5 used, fully recovered in ", "s"),
        (lines.next(), "  2/366d log: admits; 2 of 2 used, fully recovered in ", "s  (binding)"),
    ] {
        let line = line.unwrap();
        assert!(line.starts_with(beginning) && line.ends_with(end), "{line}");
    }
    assert_eq!(lines.next(), None);
    let (code, text) = check(&daemon, &["default", "a", "--explain"]);
    assert_eq!(code, 1);
    assert!(text.contains("  2/366d log: denies for 316"), "{text}");
    daemon.stop();
}

#[test]
fn json_output_is_the_daemons_response() {
    let daemon = Daemon::start([SLOW]);
    let (code, json) = check(&daemon, &["default", "a", "-o", "json"]);
    assert_eq!(code, 0);
    assert!(json.starts_with(r#"{"allowed":true,"reason":"ok","policy":"default""#), "{json}");
    assert!(json.ends_with("]}\n") && json.lines().count() == 1, "{json}");
    daemon.stop();
}

#[test]
fn key_may_be_any_bytes() {
    let daemon = Daemon::start([SLOW]);
    let key = OsStr::from_bytes(b"\xff\x01");
    for (left, code) in [("1 left", 0), ("0 left", 0), ("0 left", 1)] {
        let arguments = ["check", "default", "--url", &daemon.url].map(OsStr::new);
        let (exit_code, line, _) = run(arguments.into_iter().chain([key]));
        assert_eq!(exit_code, code, "{line}");
        assert!(line.contains(left), "{line}");
    }
    daemon.stop();
}

#[test]
fn invalid_check_exits_with_2_and_the_reason() {
    let daemon = Daemon::start([SLOW]);
    for (arguments, message) in [
        (&["defualt", "a"][..], "there is no policy \"defualt\"; did you mean \"default\"?"),
        (&["10/s burts 3", "a"], "unknown word \"burts\"; did you mean \"burst\"?"),
        (&["default", ""], "the key is empty; write a key"),
        (&["=2/s", "a"], "neither a policy's name"),
        (&["default", "a", "--cost", "1.0"], "invalid value '1.0'"),
        (&["default", "a", "--cost", "9007199254740992"], "is too large"),
        (&["default", "a", "--url", UNREACHABLE], "start one with `tollgate serve`"),
        (&["default", "a", "--url", "127.0.0.1"], "write it as http://127.0.0.1:8080"),
        (&["default", "a", "--url", "https://127.0.0.1"], "write it as http://127.0.0.1:8080"),
        (&["2/s", "a", "--tier", "pro"], "a limit has no tiers"),
        (&["default"], "required arguments were not provided"),
    ] {
        let mut command = tollgate();
        command.arg("check").args(arguments).env("TOLLGATE_URL", &daemon.url);
        let (code, printed, error) = output(&mut command, b"");
        assert_eq!((code, &*printed), (2, ""), "{arguments:?}");
        assert!(error.starts_with("error: ") && error.contains(message), "{arguments:?}: {error}");
    }
    daemon.stop();
}

#[test]
fn data_directory_decides_without_a_daemon() {
    let folder = Folder::create();
    let data = folder.to_str().unwrap();
    let run = |command, policy, more: &[&str]| {
        let arguments = [command, policy, "a", "--url", UNREACHABLE, "--data", data];
        run([&arguments[..], more].concat())
    };
    let check = |policy, more: &[&str]| run("check", policy, more);
    for (code, line) in [
        (0, "✓ allowed  a  2/366d log  1 left\n"),
        (0, "✓ allowed  a  2/366d log  0 left\n"),
        (1, "✗ denied  a  2/366d log  0 left  again in "),
    ] {
        let (exit_code, output, error) = check(SLOW, &[]);
        assert_eq!((exit_code, &*error), (code, ""));
        assert!(output.starts_with(line), "{output}");
    }
    let (code, output, _) = run("peek", SLOW, &[]);
    assert!(code == 1 && output.starts_with("✗ denied"), "{output}");
    assert_eq!(check("login", &[]).0, 0);
    let yaml = "policies: { mine: { limits: [1/366d log] } }";
    let file = folder.write("tollgate.yaml", yaml).display().to_string();
    assert_eq!(check("mine", &["--config", &file]).0, 0);
    assert_eq!(check("mine", &["--config", &file]).0, 1);
}

#[test]
fn data_directory_of_a_running_daemon_is_rejected() {
    let folder = Folder::create();
    let data = folder.to_str().unwrap();
    let daemon = Daemon::start([SLOW, "--data", data]);
    let check = ["check", SLOW, "a", "--url", UNREACHABLE, "--data", data];
    let (code, _, error) = run(check);
    assert_eq!(code, 2);
    assert!(error.contains("is in use by another process"), "{error}");
    daemon.stop();
    assert_eq!(run(check).0, 0);
}

#[test]
fn closed_output_is_no_error() {
    let daemon = Daemon::start([SLOW]);
    for code in [0, 0, 1] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = tollgate();
        command.args(["check", "default", "a", "--url", &daemon.url]);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
    daemon.stop();
}

#[test]
fn environment_variable_sets_the_url() {
    let daemon = Daemon::start([SLOW]);
    let mut command = tollgate();
    command.args(["check", "default", "a"]).env("TOLLGATE_URL", &daemon.url);
    assert_eq!(output(&mut command, b"").0, 0);
    daemon.stop();
}

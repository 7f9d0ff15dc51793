//! The commands of operators, with a daemon that requires tokens.

use tollgate_testkit::Folder;

use crate::process::{Daemon, output, run, tollgate};

const OPERATOR: &str = "operator-0123456789abcdef";

const CONFIG: &str = "
policies: { api: { limits: [2/366d log], tiers: { gold: [5/366d log] } }, jobs: { limits: [2 concurrent lease 1d] } }
tokens: [{ name: on-call, token: operator-0123456789abcdef, scopes: [admin] }]
";

/// A daemon, and a file with the token of an operator.
struct Fixture {
    daemon: Daemon,
    folder: Folder,
}

impl Fixture {
    fn new() -> Self {
        let folder = Folder::create();
        folder.write("operator.token", format!("{OPERATOR}\n"));
        Fixture { daemon: Daemon::with_config(CONFIG, |command| command), folder }
    }

    /// Runs a command with the token. Returns the exit code and the output.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let token = self.folder.join("operator.token");
        let connection = ["--url", &self.daemon.url, "--token-file", token.to_str().unwrap()];
        let (code, output, error) = run([arguments, &connection].concat());
        assert_eq!(error, "", "{arguments:?}");
        (code, output)
    }
}

#[test]
fn operations_take_effect_on_the_next_request() {
    let fixture = Fixture::new();
    for (arguments, code, line) in [
        ("inspect api a", 0, "a  api\n  2/366d log: 0 of 2 used\n"),
        ("reset api a", 1, "a  api  nothing to reset, 2 of 2 left\n"),
        ("penalize api a --cost 2", 0, "a  api  2 charged, 0 of 2 left\n"),
        ("check api a", 1, "✗ denied  a  api  2/366d log  0 left  again in "),
        ("inspect api a", 0, "a  api\n  2/366d log: 2 of 2 used, fully recovered in "),
        ("refund api a", 0, "a  api  1 given back, 1 of 2 left\n"),
        ("check api a", 0, "✓ allowed  a  api  2/366d log  0 left\n"),
        ("reset api a", 0, "a  api  reset, 2 of 2 left\n"),
        ("refund api a", 1, "a  api  nothing to give back, 2 of 2 left\n"),
        ("block api a --for 1h", 0, "a  api  blocked for 3600s\n"),
        ("check api a", 1, "✗ denied  a  api  2/366d log  2 left  blocked, again in 3"),
        ("inspect api a", 0, "a  api\n  blocked for 3"),
        ("reset api a", 1, "a  api  nothing to reset, still blocked; `tollgate unblock` removes"),
        ("block api a", 0, "a  api  blocked until it is unblocked\n"),
        ("peek api a", 1, "✗ denied  a  api  2/366d log  2 left  blocked, until it is unblocked\n"),
        ("unblock api a", 0, "a  api  unblocked, 2 of 2 left\n"),
        ("unblock api a", 1, "a  api  not blocked\n"),
        ("check api a --tier gold", 0, "✓ allowed  a  api  5/366d log  4 left\n"),
        ("inspect api a --tier gold", 0, "a  api\n  5/366d log: 1 of 5 used"),
        ("check jobs a", 0, "✓ allowed  a  jobs  2 concurrent lease 1d  1 left  lease "),
        ("inspect jobs a", 0, "a  jobs\n  2 concurrent lease 1d: 1 of 2 used"),
        ("block 1/s a", 0, "a  1/s  blocked until it is unblocked\n"),
        ("reset api a -o json", 0, r#"{"allowed":true,"#),
    ] {
        let parts: Vec<&str> = arguments.split(' ').collect();
        let (exit_code, output) = fixture.run(&parts);
        assert_eq!(exit_code, code, "{arguments}: {output}");
        let is_whole = line.ends_with('\n');
        assert!(
            if is_whole { output == line } else { output.starts_with(line) },
            "{arguments}: {output}"
        );
    }
    let (_, text) = fixture.run(&["inspect", "jobs", "a"]);
    assert!(
        text.lines()
            .any(|line| line.starts_with("    lease ") && line.contains(": cost 1, ends in ")),
        "{text}"
    );
    fixture.daemon.stop();
}

#[test]
fn token_comes_from_a_file_or_a_variable() {
    let fixture = Fixture::new();
    let url = &fixture.daemon.url;
    let empty = fixture.folder.write("empty", "\n");
    let empty = empty.to_str().unwrap();
    let command = |token: Option<(&str, &str)>, arguments: &[&str]| {
        let mut command = tollgate();
        command.args(["peek", "api", "a", "--url", url]).args(arguments).envs(token);
        output(&mut command, b"")
    };
    for (variable, arguments, code, text) in [
        (Some(("TOLLGATE_TOKEN", OPERATOR)), &[][..], 0, "2 left"),
        (Some(("TOLLGATE_TOKEN_FILE", empty)), &[], 2, "the token is empty"),
        (None, &["--token-file", "/none"], 2, "cannot read --token-file /none: No such file"),
        (Some(("TOLLGATE_TOKEN", "a\nb")), &[], 2, "the token contains a control character"),
        (Some(("TOLLGATE_TOKEN", "unknown")), &[], 2, "error: "),
        (None, &[], 2, "set --token-file or TOLLGATE_TOKEN"),
    ] {
        let (exit_code, printed, error) = command(variable, arguments);
        let printed = printed + &error;
        assert_eq!(exit_code, code, "{variable:?}: {printed}");
        assert!(printed.contains(text) && !printed.contains(OPERATOR), "{variable:?}: {printed}");
    }
    fixture.daemon.stop();
}

#[test]
fn unreachable_daemon_and_invalid_arguments_exit_with_2() {
    for (arguments, message) in [
        (
            &["block", "api", "a", "--url", "http://127.0.0.1:1"][..],
            "no daemon at http://127.0.0.1:1",
        ),
        (&["block", "api", "a", "--url", "unix:/none"], "no daemon at unix:/none"),
        (&["block", "api", "a", "--for", "soon"], "invalid value 'soon' for '--for <TIME>'"),
        (&["refund", "api", "a", "--cost", "0"], "invalid value '0' for '--cost <N>'"),
        (&["reset", "api", ""], "the key is empty"),
        (&["unblock", "api"], "required arguments were not provided"),
    ] {
        let (code, printed, error) = run(arguments.iter().copied());
        assert_eq!((code, &*printed), (2, ""), "{arguments:?}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

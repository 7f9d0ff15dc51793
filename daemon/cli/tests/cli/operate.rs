//! The commands of operators, with a daemon that requires tokens.

use tollgate_testkit::Folder;

use crate::process::{Daemon, output, run, tollgate};

const OPERATOR: &str = "operator-0123456789abcdef";

const CONFIG: &str = r#"
policies: { api: { limits: [2/366d log], tiers: { gold: [5/366d log] } }, jobs: { limits: [2 concurrent lease 1d] },
  keys: { limits: [2/366d log] } }
rules: [{ policy: keys, key: "{header.x-api-key|ip}" }]
tokens: [{ name: on-call, token: operator-0123456789abcdef, scopes: [admin] }]
"#;

const UNUSED: &str =
    "hint: nothing is counted for this key: it has not been seen, or has recovered\n";
const UNUSED_BLOCK: &str = "hint: nothing is counted for this key: it has not been seen, or has \
                            recovered; the block applies to its next request\n";

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

    /// Runs a command with the token. Returns the exit code and the output. Standard error has
    /// nothing but a hint.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let (code, output, error) = self.run_with_hint(arguments);
        assert!(error.is_empty() || error == UNUSED || error == UNUSED_BLOCK, "{error}");
        (code, output)
    }

    fn run_with_hint(&self, arguments: &[&str]) -> (i32, String, String) {
        let token = self.folder.join("operator.token");
        let connection = ["--url", &self.daemon.url, "--token-file", token.to_str().unwrap()];
        run([arguments, &connection].concat())
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
        // The block ends before the limit has recovered.
        ("block api a --for 1h", 0, "a  api  blocked for 3600s\n"),
        ("unblock api a", 0, "a  api  unblocked, 0 of 2 left\n"),
        ("reset api a", 0, "a  api  reset, 2 of 2 left\n"),
        ("refund api a", 1, "a  api  nothing to give back, 2 of 2 left\n"),
        ("block api a --for 1h", 0, "a  api  blocked for 3600s\n"),
        ("check api a", 1, "✗ denied  a  api  2/366d log  2 left  blocked, again in 3"),
        ("inspect api a", 0, "a  api\n  blocked for 3"),
        ("reset api a", 1, "a  api  nothing to reset, still blocked for 3"),
        ("block api a", 0, "a  api  blocked until it is unblocked\n"),
        (
            "reset api a",
            1,
            "a  api  nothing to reset, still blocked until it is unblocked; `tollgate unblock` \
             removes the block\n",
        ),
        ("peek api a", 1, "✗ denied  a  api  2/366d log  2 left  blocked, until it is unblocked\n"),
        ("unblock api a", 0, "a  api  unblocked, 2 of 2 left\n"),
        ("unblock api a", 1, "a  api  not blocked\n"),
        ("check api a --tier gold", 0, "✓ allowed  a  api  5/366d log  4 left\n"),
        ("inspect api a --tier gold", 0, "a  api\n  5/366d log: 1 of 5 used"),
        ("check jobs a", 0, "✓ allowed  a  jobs  2 concurrent lease 1d  1 left  lease "),
        ("inspect jobs a", 0, "a  jobs\n  2 concurrent lease 1d: 1 of 2 used"),
        ("block 1/s a", 0, "a  1/s  blocked until it is unblocked\n"),
        ("reset api a -o json", 0, r#"{"changed":true,"#),
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
fn hints_are_written_to_standard_error() {
    let fixture = Fixture::new();
    let tier = "hint: policy \"api\" has no tier \"glod\"; it has gold; the limits without a tier \
                apply\n";
    let rule = "hint: nothing is counted for this key: it has not been seen, or has recovered; keys \
                of rules[0] look like \"header.x-api-key=…\" or \"ip=…\"; did you mean \
                \"header.x-api-key=vip\"?\n";
    for (arguments, code, hint) in [
        ("reset api a", 1, UNUSED),
        ("inspect api a", 0, UNUSED),
        ("reset keys vip", 1, rule),
        ("inspect keys vip", 0, rule),
        ("block api a", 0, UNUSED_BLOCK),
        ("unblock api a", 0, ""),
        ("check api a --tier glod", 0, tier),
        ("inspect api a", 0, ""),
    ] {
        let parts: Vec<&str> = arguments.split(' ').collect();
        let (exit_code, _, error) = fixture.run_with_hint(&parts);
        assert_eq!((exit_code, &*error), (code, hint), "{arguments}");
    }
    fixture.daemon.stop();
}

#[test]
fn descriptors_are_named_by_domain_and_entries() {
    let folder = Folder::create();
    let limits = "
domain: edge
descriptors:
  - { key: remote_address, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: path, descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 2 } }] }
";
    let path = folder.write("limits.yaml", limits);
    let config = format!(
        "policies: {{ api: {{ limits: [1/s] }} }}\noperators: loopback\nenvoy: {{ config: [\"{}\"] }}",
        path.display()
    );
    let daemon = Daemon::with_config(&config, |command| command);
    let address = "--domain edge --descriptor remote_address=10.0.0.1";
    // Characters with a meaning in keys are escaped.
    let several = "--domain edge --descriptor path=/a;b=100% --descriptor user=7";
    for (arguments, code, line) in [
        (
            format!("penalize {address} --cost 2"),
            0,
            "remote_address=10.0.0.1  edge  2 charged, 0 of",
        ),
        (format!("check {address}"), 1, "✗ denied  remote_address=10.0.0.1  edge  2/d fixed"),
        (format!("reset {address}"), 0, "remote_address=10.0.0.1  edge  reset, 2 of 2 left\n"),
        (
            format!("block {address} --for 1h"),
            0,
            "remote_address=10.0.0.1  edge  blocked for 3600s\n",
        ),
        (format!("peek {address}"), 1, "✗ denied  remote_address=10.0.0.1  edge"),
        (
            format!("unblock {address}"),
            0,
            "remote_address=10.0.0.1  edge  unblocked, 2 of 2 left\n",
        ),
        (format!("check {several}"), 0, "✓ allowed  path=/a%3Bb%3D100%25;user=7  edge"),
        (format!("refund {several}"), 0, "path=/a%3Bb%3D100%25;user=7  edge  1 given back, 2 of 2"),
        (format!("inspect {several}"), 0, "path=/a%3Bb%3D100%25;user=7  edge\n  2/d fixed: 0 of 2"),
    ] {
        let parts = arguments.split(' ').chain(["--url", &daemon.url]);
        let (exit_code, output, error) = run(parts);
        assert_eq!(exit_code, code, "{arguments}: {output}{error}");
        assert!(output.starts_with(line), "{arguments}: {output}");
    }
    for (arguments, message) in [
        ("block --domain edges --descriptor a=b", "no domain \"edges\"; the domains are edge"),
        ("block --domain edge --descriptor a=b", "; its rules are remote_address, path.user"),
        ("block --domain edge --descriptor a", "--descriptor \"a\": write an entry such as"),
        ("block --domain edge", "--descriptor <KEY=VALUE>"),
        ("block api a --domain edge --descriptor a=b", "cannot be used with"),
        ("block edge a=b", "\"edge\" is a domain, not a policy; name a domain and a descriptor"),
        ("block api", "<KEY>"),
        ("block", "<LIMIT|POLICY>"),
    ] {
        let (code, _, error) = run(arguments.split(' ').chain(["--url", &daemon.url]));
        assert_eq!(code, 2, "{arguments}: {error}");
        assert!(error.contains(message), "{arguments}: {error}");
    }
    daemon.stop();
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
        (
            &["refund", "api", "a", "--cost", "0"],
            "invalid value '0' for '--cost <N>': write a whole number of at least 1",
        ),
        (&["reset", "api", ""], "the key is empty"),
        (&["unblock", "api"], "required arguments were not provided"),
    ] {
        let (code, printed, error) = run(arguments.iter().copied());
        assert_eq!((code, &*printed), (2, ""), "{arguments:?}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

const TRACKED: &str = r#"
policies:
  api: { limits: [2/366d log], track: { recent: 5, usage: true, timeline: 1h by 1m } }
  plain: { limits: [2/366d log] }
"#;

#[test]
fn tracked_keys_are_listed_and_inspected() {
    let daemon = Daemon::with_config(TRACKED, |command| command);
    let run = |arguments: &str| {
        let arguments: Vec<_> = arguments.split(' ').chain(["--url", &daemon.url]).collect();
        run(arguments)
    };
    for key in ["user:1", "user:1", "user:1", "user:2", "ip:1"] {
        run(&format!("check api {key}"));
    }
    let (code, table, _) = run("keys api --order most-denied");
    assert!(code == 0 && table.contains("KEY") && table.lines().count() == 2, "{table}");
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().take(4).collect();
    assert_eq!(row, ["user:1", "2", "1", "2"]);
    let (code, page, rest) = run("keys api --order most-used --prefix user: --limit 1 -o json");
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    assert_eq!((code, rest.as_str()), (0, ""));
    assert_eq!(page["keys"][0]["key"], "user:1");
    let cursor = page["cursor"].as_str().unwrap();
    let (_, next, _) = run(&format!(
        "keys api --order most-used --prefix user: --limit 1 -o json --cursor {cursor}"
    ));
    let next: serde_json::Value = serde_json::from_str(&next).unwrap();
    assert_eq!((&next["keys"][0]["key"], &next["cursor"]), (&"user:2".into(), &().into()));
    let (code, text, _) = run("inspect api user:1");
    assert_eq!(code, 0);
    for part in ["usage: 2 allowed, 1 denied, cost 2; first ", ": denied, cost 1\n", "60s from "] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for (arguments, message) in [
        ("keys nope", "nope"),
        ("keys plain", "policy \"plain\" tracks nothing"),
        ("keys api --order best", "unknown order \"best\"; expected one of newest, oldest"),
        ("keys api --limit 0", "limit is 0; it must be from 1 to 500"),
        ("keys api --cursor 0123456700", "from before a restart of the daemon"),
    ] {
        let (code, output, error) = run(arguments);
        assert!(code == 2 && output.is_empty() && error.contains(message), "{arguments}: {error}");
    }
}

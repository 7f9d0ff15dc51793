//! `tollgate serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tollgate_testkit::Folder;

use crate::client::send;
use crate::process::{Daemon, HTTP_ONLY, output, run, tollgate};

#[test]
fn printed_commands_lead_to_a_denial_with_an_exact_time() {
    for arguments in [&[][..], &["3/d"], &["12/h log; 100/d fixed"]] {
        let daemon = Daemon::start(arguments);
        let commands = daemon.greeting.lines().filter_map(|line| line.strip_prefix("  "));
        let commands: Vec<_> = commands.filter(|command| command.contains("curl ")).collect();
        assert_eq!(commands.len(), 2, "{}", daemon.greeting);
        // All lines at once, as a user pastes them.
        let mut shell = Command::new("sh");
        let (code, printed, error) = output(shell.args(["-c", &commands.join("\n")]), b"");
        assert_eq!(code, 0, "{commands:?}: {error}");
        let first = printed.lines().find(|line| line.starts_with("HTTP")).unwrap();
        assert!(first.starts_with("HTTP/1.1 200"), "{arguments:?}: {printed}");
        let (_, denial) = printed.rsplit_once("HTTP/1.1 429").unwrap();
        let between = |before, after| {
            let (_, rest) = denial.split_once(before).unwrap();
            rest.split_once(after).unwrap().0.trim()
        };
        let header: u64 = between("retry-after:", "\r\n").parse().unwrap();
        assert_eq!(header, rounded_up(between(r#""retry_after":"#, ",")), "{printed}");
        assert!(header > 0, "{printed}");
        daemon.stop();
    }
}

/// Whole seconds of a decimal number, rounded up.
fn rounded_up(seconds: &str) -> u64 {
    let (whole, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    whole.parse::<u64>().unwrap() + u64::from(decimals.bytes().any(|byte| byte != b'0'))
}

#[test]
fn printed_envoy_request_is_accepted() {
    let mut command = tollgate();
    command.args(["serve", "3/d", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    let daemon = Daemon::spawn(command.args(["--metrics", "off", "--resp", "off"]));
    let line = daemon.greeting.lines().find(|line| line.contains("/json -d '")).unwrap();
    let body = line.split('\'').nth(1).unwrap();
    let response = send(daemon.address(), "POST /json", &[], body);
    assert!(response.body.contains(r#"{"overallCode":"OK","#), "{line}: {response:?}");
    daemon.stop();
}

#[test]
fn without_a_file_clients_on_this_machine_may_operate() {
    for arguments in [&[][..], &["3/d"]] {
        let policy = if arguments.is_empty() { "api" } else { "default" };
        let reset = |daemon: &Daemon, headers: &[&str]| {
            let body = format!(r#"{{"policy":"{policy}","key":"a"}}"#);
            send(daemon.address(), "POST /v1/reset", headers, &body).status
        };
        let daemon = Daemon::start_with(|command| command.stderr(Stdio::piped()), arguments);
        assert_eq!(reset(&daemon, &[]), 200, "{arguments:?}");
        for header in ["X-Forwarded-For: 192.0.2.1", "Host: app.test", "Sec-Fetch-Site: none"] {
            assert_eq!(reset(&daemon, &[header]), 403, "{arguments:?} {header}");
        }
        let log = daemon.stop_and_read_log();
        assert!(!log.contains(" WARN "), "{log}");
        let daemon =
            Daemon::start_with(|command| command.env("TOLLGATE_OPERATORS", "tokens"), arguments);
        assert_eq!(reset(&daemon, &[]), 403, "{arguments:?}");
    }
}

#[test]
fn greeting_lists_policies_and_listeners() {
    let daemon = Daemon::start::<[&str; 0]>([]);
    for line in [
        "tollgate 0.1.0 is ready",
        "  store             memory, at most 1000000 keys and 256MiB",
        "  data              none: a restart loses all state; keep it with --data DIR",
        "Policies (samples; write your own with --config FILE)",
        "  api     10/s burst 20",
        "  jobs    20 concurrent lease 1min",
        "  login   5/min log",
        "  search  10/s fixed; 120/min fixed; 240/h sliding by 1min",
    ] {
        assert!(
            daemon.greeting.lines().any(|printed| printed == line),
            "{line}\n{}",
            daemon.greeting
        );
    }
    daemon.stop();
    let daemon = Daemon::start(["10/s burst 20", "--max-keys", "7"]);
    assert!(daemon.greeting.contains("  default  10/s burst 20\n"), "{}", daemon.greeting);
    assert!(daemon.greeting.contains("at most 7 keys and 256MiB\n"), "{}", daemon.greeting);
    daemon.stop();
}

#[test]
fn port_in_use_names_the_flag_and_a_free_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let flags = ["--http", "--grpc", "--resp", "--metrics", "--admin"];
    for flag in flags {
        let others = flags.iter().filter(|f| **f != flag).flat_map(|flag| [*flag, "127.0.0.1:0"]);
        let (code, printed, error) = run(["serve", flag, &address].into_iter().chain(others));
        assert_eq!((code, &*printed), (2, ""));
        let hint = format!("set another address: {flag} ");
        let free = error.trim().rsplit_once(&hint).unwrap().1;
        assert!(error.starts_with(&format!("error: {address} is in use")), "{error}");
        assert_ne!(free, address);
        TcpListener::bind(free).unwrap();
    }
}

#[test]
fn suggested_port_is_not_that_of_another_listener() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let next = format!("127.0.0.1:{}", address.port().saturating_add(1));
    let flags = ["--http", &address.to_string(), "--grpc", &next, "--resp", "off"];
    let (code, _, error) = run(["serve"].iter().chain(&flags));
    assert_eq!(code, 2, "{error}");
    assert!(error.contains(" --http 127.0.0.1:") && !error.contains(&next), "{error}");
}

#[test]
fn default_port_of_the_dashboard_in_use_is_a_warning() {
    // Another program may have it already, such as Prometheus.
    let taken = TcpListener::bind("127.0.0.1:9090");
    let daemon = Daemon::start_with(
        |command| command.env_remove("TOLLGATE_LISTEN__ADMIN").stderr(Stdio::piped()),
        ["10/s"],
    );
    drop(taken);
    assert!(daemon.greeting.contains("  dashboard         off\n"), "{}", daemon.greeting);
    let log = daemon.stop_and_read_log();
    let warning = "no dashboard: 127.0.0.1:9090 is in use by another program; set another";
    assert!(log.contains(warning), "{log}");
}

#[test]
fn invalid_arguments_exit_with_2_and_the_reason() {
    let folder = Folder::create();
    let yaml = "policies:\n  api:\n    limits: [10/s]\n  api: {}\n";
    let file = folder.write("tollgate.yaml", yaml).display().to_string();
    let file = &*file;
    let duplicate = format!(
        "error: api is defined twice; remove one of the two\n --> {file}:4:3\n  |\n4 |   api: {{}}\n  |   ^^^\n"
    );
    for (arguments, message) in [
        (&["--config", file][..], &*duplicate),
        (&["--config", "/nowhere/tollgate.yaml"], "(os error 2)\n --> /nowhere/tollgate.yaml\n"),
        (&["10/month"], "write 30d, or 1d windows"),
        (&["t.yaml"], "\"t.yaml\" is no limit; to read a file, write --config t.yaml"),
        (&["10/s", "--config", file], "cannot be used with"),
        (&["--http", "nonsense"], "unix:PATH or off\n --> --http\n"),
        (&["--http", "nowhere.invalid:1"], "set --http to a HOST:PORT of this machine"),
        (&["--max-keys", "0"], "error: store.max_keys: \"0\": expected a number of at least 1"),
        (
            &["--http", "off", "--grpc", "off", "--resp", "off", "--metrics", "off"],
            "every listener is off",
        ),
        (
            &["--admin", "0.0.0.0:0"],
            "other machines reach 0.0.0.0:0, where the dashboard requires a token; add one with the \
             scope read to tokens, or use a loopback address or a Unix socket\n --> --admin\n",
        ),
        (&["--http", "unix:/nowhere/s"], "unix:/nowhere/s: its directory does not exist"),
        (
            &[&HTTP_ONLY[..], &["--data", file]].concat(),
            "choose a directory that only tollgate uses",
        ),
    ] {
        let (code, printed, error) = run(["serve"].iter().chain(arguments));
        assert_eq!((code, &*printed), (2, ""), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn restart_keeps_the_data_directory() {
    let data = Folder::create();
    let arguments = ["1/366d log", "--data", data.to_str().unwrap()];
    let first = Daemon::start(arguments);
    assert!(first.greeting.contains(": new\n"), "{}", first.greeting);
    assert_eq!(run(["check", "default", "a", "--url", &first.url]).0, 0);
    first.stop();
    let second = Daemon::start(arguments);
    assert!(second.greeting.contains(": 1 keys restored\n"), "{}", second.greeting);
    assert_eq!(run(["check", "default", "a", "--url", &second.url]).0, 1);
    assert_eq!(run(["check", "default", "b", "--url", &second.url]).0, 0);
    second.stop();
    data.write("snapshot", "not a snapshot");
    let third = Daemon::start(arguments);
    assert!(third.greeting.contains("not a snapshot of tollgate"), "{}", third.greeting);
    third.stop();
}

#[test]
fn saved_state_survives_a_crash() {
    let folder = Folder::create();
    let yaml = format!(
        "store: {{ data: {}/state, snapshot_interval: 100ms }}\npolicies: {{ a: {{ limits: [1/366d log] }} }}",
        folder.display()
    );
    let file = folder.write("tollgate.yaml", yaml);
    let arguments = ["--config", file.to_str().unwrap()];
    let first = Daemon::start(arguments);
    assert_eq!(run(["check", "a", "k", "--url", &first.url]).0, 0);
    let saved =
        || std::fs::metadata(folder.join("state/snapshot")).and_then(|file| file.modified()).ok();
    // The second save from here on began after the check.
    for _ in 0..2 {
        let before = saved();
        while saved() == before {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    first.signal(Signal::KILL);
    assert_eq!(first.wait(), None);
    let second = Daemon::start(arguments);
    assert_eq!(run(["check", "a", "k", "--url", &second.url]).0, 1);
    second.stop();
}

#[test]
fn first_signal_drains_and_second_one_stops_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let daemon = Daemon::start(["1/s"]);
        let mut busy = TcpStream::connect(daemon.address()).unwrap();
        let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n";
        write!(busy, "{head}expect: 100-continue\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(busy.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
        daemon.signal(signal);
        // A daemon that drains is not ready, or refuses connections.
        while is_ready(daemon.address()) {}
        daemon.signal(signal);
        assert_eq!(daemon.wait(), Some(code));
    }
}

fn is_ready(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut response = String::new();
    let sent =
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    sent.and_then(|()| stream.read_to_string(&mut response)).is_ok()
        && response.starts_with("HTTP/1.1 200")
}

#[test]
fn version_and_help_are_printed() {
    assert_eq!(run(["--version"]), (0, "tollgate 0.1.0\n".to_owned(), String::new()));
    let (code, printed, error) = run::<[&str; 0]>([]);
    assert_eq!((code, &*printed), (2, ""));
    assert!(error.contains("serve") && error.contains("check"), "{error}");
}

#[test]
fn fatal_errors_are_json_if_the_log_is() {
    let folder = Folder::create();
    for (yaml, message) in [
        ("log: { format: json }\npolicies: { a: { limits: [1/month] } }\n", "policies.a.limits[0]"),
        ("log:\n  format: \"json\"\nlisten: { http: 192.0.2.1:1 }\n", "192.0.2.1:1"),
    ] {
        let file = folder.write("tollgate.yaml", yaml).display().to_string();
        let (code, output, error) = run(["serve", "--config", &file]);
        assert_eq!((code, &*output), (2, ""), "{error}");
        let last = error.lines().last().unwrap();
        let line: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(line["level"], "ERROR", "{line}");
        assert!(line["message"].as_str().unwrap().contains(message), "{line}");
    }
    let file = folder.write("tollgate.yaml", "policies: { a: { limits: [1/month] } }\n");
    let (code, _, error) = run(["serve", "--config", file.to_str().unwrap()]);
    assert!(code == 2 && error.starts_with("error: policies.a.limits[0]"), "{error}");
}

#[test]
fn denials_are_logged_once_for_each_policy_with_the_key_as_privacy_allows() {
    for (privacy, is_plain) in [("plain", true), ("hashed", false)] {
        let yaml = format!(
            "privacy: {privacy}\npolicies: {{ a: {{ limits: [1/d] }}, b: {{ limits: [1/d] }} }}\n"
        );
        let daemon = Daemon::with_config(&yaml, |command| command.stderr(Stdio::piped()));
        for policy in ["a", "a", "a", "b"] {
            let body = format!(r#"{{"policy":"{policy}","key":"customer-42"}}"#);
            send(daemon.address(), "POST /v1/check", &[], &body);
        }
        let log = daemon.stop_and_read_log();
        let denied: Vec<_> = log.lines().filter(|line| line.contains(" denied ")).collect();
        assert_eq!(denied.len(), 1, "{log}");
        assert!(denied[0].contains("policy=\"a\"") && denied[0].contains("INFO"), "{log}");
        assert_eq!(denied[0].contains("customer-42"), is_plain, "{log}");
    }
}

#[test]
fn a_tier_that_the_policy_lacks_is_logged_once_for_a_gateway() {
    let yaml = "
policies: { a: { limits: [9/d], tiers: { gold: [99/d] } } }
rules: [{ policy: a, key: all, tier: \"{header.x-plan}\", on_missing: skip }]
";
    let daemon = Daemon::with_config(yaml, |command| command.stderr(Stdio::piped()));
    for plan in ["gold", "glod", "glod"] {
        let plan = format!("X-Plan: {plan}");
        let headers = ["X-Original-Method: GET", "X-Original-URI: /", "X-Real-IP: 10.0.0.1", &plan];
        let response = send(daemon.address(), "GET /v1/forward-auth/nginx", &headers, "");
        assert_eq!(response.status, 200, "{}", response.body);
    }
    let log = daemon.stop_and_read_log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("unknown tier")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    for part in [" WARN ", "policy=\"a\"", "tier=\"glod\"", "requests=1"] {
        assert!(lines[0].contains(part), "{log}");
    }
}

//! `tollgate serve`.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use tollgate_testkit::Folder;

use crate::process::{Daemon, run, tollgate};

#[test]
fn printed_commands_lead_to_a_denial_with_an_exact_time() {
    for arguments in [&[][..], &["3/d"], &["12/h log; 100/d fixed"]] {
        let daemon = Daemon::start(arguments);
        let commands = daemon.greeting.lines().filter_map(|line| line.strip_prefix("  "));
        let commands: Vec<_> = commands.filter(|command| command.contains("curl ")).collect();
        assert_eq!(commands.len(), 2, "{}", daemon.greeting);
        // Pasted together, as they are read.
        let said = Command::new("sh").args(["-c", &commands.join("\n")]).output().unwrap().stdout;
        let mut said = String::from_utf8(said).unwrap();
        if said.is_empty() {
            said = by_own_client(&daemon, commands[1]);
        }
        let statuses: Vec<_> = said.lines().filter(|line| line.starts_with("HTTP")).collect();
        assert!(statuses[0].starts_with("HTTP/1.1 200"), "{arguments:?}: {said}");
        let (_, denial) = said.rsplit_once("HTTP/1.1 429").unwrap();
        let between = |before, after| {
            let (_, rest) = denial.split_once(before).unwrap();
            rest.split_once(after).unwrap().0.trim()
        };
        let header: u64 = between("retry-after:", "\r\n").parse().unwrap();
        assert_eq!(header, rounded_up(between(r#""retry_after":"#, ",")), "{said}");
        assert!(header > 0, "{said}");
        daemon.stop();
    }
}

/// Whole seconds of a decimal number, rounded up.
fn rounded_up(seconds: &str) -> u64 {
    let (whole, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    whole.parse::<u64>().unwrap() + u64::from(decimals.bytes().any(|byte| byte != b'0'))
}

/// Asks what the last command asks, often enough, where there is no curl.
fn by_own_client(daemon: &Daemon, command: &str) -> String {
    let body = command.split('\'').nth(1).unwrap();
    let mut said = String::new();
    for _ in 0..7 {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length:";
        write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
        std::io::Read::read_to_string(&mut stream, &mut said).unwrap();
        said.push('\n');
    }
    said
}

#[test]
fn printed_envoy_request_is_accepted() {
    let mut command = tollgate();
    command.args(["serve", "3/d", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    command.args(["--metrics", "off", "--resp", "off"]).stderr(Stdio::null());
    let daemon = Daemon::spawn(&mut command);
    let line = daemon.greeting.lines().find(|line| line.contains("/json -d '")).unwrap();
    let body = line.split('\'').nth(1).unwrap();
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    let head = "POST /json HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stream, &mut said).unwrap();
    assert!(said.contains(r#"{"overallCode":"OK","#), "{line}: {said}");
    daemon.stop();
}

#[test]
fn greeting_lists_policies_and_listeners() {
    let daemon = Daemon::start::<[&str; 0]>([]);
    for line in [
        "tollgate 0.1.0 is ready",
        "  store             memory, at most 1000000 keys",
        "  data              none: a restart loses all state; keep it with --data DIR",
        "Policies (samples; write your own with --config FILE)",
        "  api     10/s burst 20",
        "  jobs    20 concurrent lease 1min",
        "  login   5/min log",
        "  search  10/s fixed; 120/min fixed; 240/h sliding by 1min",
    ] {
        assert!(daemon.greeting.lines().any(|it| it == line), "{line}\n{}", daemon.greeting);
    }
    daemon.stop();
    let daemon = Daemon::start(["10/s burst 20", "--max-keys", "7"]);
    assert!(daemon.greeting.contains("  default  10/s burst 20\n"), "{}", daemon.greeting);
    assert!(daemon.greeting.contains("at most 7 keys\n"), "{}", daemon.greeting);
    daemon.stop();
}

#[test]
fn port_in_use_names_the_flag_and_a_free_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let flags = ["--http", "--grpc", "--resp", "--metrics"];
    for flag in flags {
        let others = flags.iter().filter(|f| **f != flag).flat_map(|flag| [*flag, "127.0.0.1:0"]);
        let (code, said, complaint) = run(["serve", flag, &address].into_iter().chain(others));
        assert_eq!((code, &*said), (2, ""));
        let hint = format!("set another address: {flag} ");
        let free = complaint.trim().rsplit_once(&hint).unwrap().1;
        assert!(complaint.starts_with(&format!("error: {address} is in use")), "{complaint}");
        assert_ne!(free, address);
        TcpListener::bind(free).unwrap();
    }
}

#[test]
fn invalid_arguments_exit_with_2_and_the_reason() {
    let data = Folder::create();
    let file = data.join("tollgate.yaml");
    std::fs::write(&file, "policies:\n  api:\n    limits: [10/s]\n  api: {}\n").unwrap();
    let file = file.to_str().unwrap();
    let place = format!(
        "error: api is defined twice; remove one of the two\n --> {file}:4:3\n  |\n4 |   api: {{}}\n  |   ^^^\n"
    );
    for (arguments, complaint) in [
        (&["--config", file][..], &*place),
        (&["--config", "/nowhere/tollgate.yaml"], "(os error 2)\n --> /nowhere/tollgate.yaml\n"),
        (&["10/month"], "write 30d, or 1d windows"),
        (&["10/s", "--config", file], "cannot be used with"),
        (&["--http", "nonsense"], "unix:PATH or off\n --> --http\n"),
        (&["--http", "nowhere.invalid:1"], "set --http to a HOST:PORT of this machine"),
        (&["--max-keys", "0"], "error: store.max_keys: \"0\": expected a number of at least 1"),
        (
            &["--http", "off", "--grpc", "off", "--resp", "off", "--metrics", "off"],
            "every listener is off",
        ),
        (&["--http", "unix:/nowhere/s"], "unix:/nowhere/s: its directory does not exist"),
        (
            &[
                "--http",
                "127.0.0.1:0",
                "--metrics",
                "off",
                "--grpc",
                "off",
                "--resp",
                "off",
                "--data",
                file,
            ],
            "choose a directory that only tollgate uses",
        ),
    ] {
        let (code, said, complained) = run(["serve"].iter().chain(arguments));
        assert_eq!((code, &*said), (2, ""), "{arguments:?}: {complained}");
        assert!(complained.contains(complaint), "{arguments:?}: {complained}");
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
    std::fs::write(data.join("snapshot"), "not one of ours").unwrap();
    let third = Daemon::start(arguments);
    assert!(third.greeting.contains("not a snapshot of tollgate"), "{}", third.greeting);
    third.stop();
}

#[test]
fn saved_state_survives_a_crash() {
    let data = Folder::create();
    let file = data.join("tollgate.yaml");
    let yaml = format!(
        "store: {{ data: {}/state, snapshot_interval: 100ms }}\npolicies: {{ a: {{ limits: [1/366d log] }} }}",
        data.display()
    );
    std::fs::write(&file, yaml).unwrap();
    let arguments = ["--config", file.to_str().unwrap()];
    let first = Daemon::start(arguments);
    assert_eq!(run(["check", "a", "k", "--url", &first.url]).0, 0);
    let saved = || std::fs::metadata(data.join("state/snapshot")).and_then(|x| x.modified()).ok();
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
        let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n";
        write!(busy, "{head}expect: 100-continue\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(busy.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
        daemon.signal(signal);
        // Once it is not ready or does not accept connections, the first signal was received.
        while is_ready(daemon.address()) {}
        daemon.signal(signal);
        assert_eq!(daemon.wait(), Some(code));
    }
}

fn is_ready(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut answer = String::new();
    let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    asked.and_then(|()| std::io::Read::read_to_string(&mut stream, &mut answer)).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

#[test]
fn version_and_help_are_printed() {
    assert_eq!(run(["--version"]), (0, "tollgate 0.1.0\n".to_owned(), String::new()));
    let (code, said, complaint) = run::<[&str; 0]>([]);
    assert_eq!((code, &*said), (2, ""));
    assert!(complaint.contains("serve") && complaint.contains("check"), "{complaint}");
}

//! `redis-cli`, as one types at it and as scripts feed it.

use std::process::Command;

use tollgate_testkit::{ClientKind, Server};

use crate::daemon::Daemon;
use crate::process::SECRET;
use crate::script::printed;

/// What it says to these words, if it is installed.
fn said(daemon: &Daemon, words: &[&str], input: &[u8]) -> Option<String> {
    let mut command = ClientKind::RedisCli.command()?;
    command.args(["-p", &daemon.port.to_string()]).args(words);
    Some(printed(command, input))
}

#[track_caller]
fn check(daemon: &Daemon, words: &[&str], input: &str, expected: &str) {
    if let Some(said) = said(daemon, words, input.as_bytes()) {
        assert_eq!(said, expected, "{words:?}");
    }
}

#[track_caller]
fn check_has(daemon: &Daemon, words: &[&str], input: &str, expected: &[&str]) {
    let Some(said) = said(daemon, words, input.as_bytes()) else { return };
    for part in expected {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn the_example_of_redis_cell_is_answered_as_there() {
    let daemon = Daemon::start();
    check(&daemon, &["CL.THROTTLE", "user123", "15", "30", "60"], "", "0\n16\n15\n-1\n2\n");
    check(&daemon, &["cl.throttle", "user1", "15", "30", "60", "1"], "", "0\n16\n15\n-1\n2\n");
    check(&daemon, &["CL.THROTTLE", "once", "0", "1", "3600"], "", "0\n1\n0\n-1\n3600\n");
    check(&daemon, &["CL.THROTTLE", "once", "0", "1", "3600"], "", "1\n1\n0\n3600\n3600\n");
}

#[test]
fn a_decision_is_a_map() {
    let daemon = Daemon::start();
    let asked = |more: &[&'static str]| [more, &["TOLLGATE.CHECK", "api", "k"]].concat();
    let both = ["allowed", "policy", "api", "remaining", "retry_after_us", "limits", "5/d log"];
    check_has(&daemon, &asked(&[]), "", &both);
    check_has(&daemon, &asked(&["-3", "--no-raw"]), "", &["\"allowed\" => (true)"]);
    check_has(
        &daemon,
        &asked(&["--json"]),
        "",
        &["{\"allowed\":true,", "\"policy\":\"api\"", "\"remaining\":2", "\"retry_after_us\":-1"],
    );
    check_has(
        &daemon,
        &["--json", "TOLLGATE.CHECK", "api", "k", "COST", "6"],
        "",
        &["\"allowed\":false", "\"retry_after_us\":-2"],
    );
}

#[test]
fn lines_of_its_input_are_commands() {
    let daemon = Daemon::start();
    let lines = "CL.THROTTLE k 1 2 3600\nEXISTS k\nDEL k\nEXISTS k\nPING\n";
    check(&daemon, &[], lines, "0\n2\n1\n-1\n1800\n1\n1\n0\nPONG\n");
    check(&daemon, &["-x", "EXISTS"], "\0\u{1}\n", "0\n");
    check(&daemon, &["-r", "2", "ECHO", "again"], "", "again\nagain\n");
}

#[test]
fn ten_thousand_commands_are_piped_in() {
    let daemon = Daemon::start();
    let mut commands = Vec::new();
    for at in 0..10_000 {
        let key = format!("k{}", at % 10);
        let words = ["CL.THROTTLE", &key, "499", "1", "86400"];
        commands.extend(format!("*{}\r\n", words.len()).bytes());
        words
            .iter()
            .for_each(|word| commands.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    let Some(said) = said(&daemon, &["--pipe"], &commands) else { return };
    assert!(said.ends_with("errors: 0, replies: 10000\n"), "{said}");
    // Each key was asked for a thousand times, and five hundred of them fit.
    check(
        &daemon,
        &["CL.THROTTLE", "k3", "499", "1", "86400", "0"],
        "",
        "0\n500\n0\n-1\n43200000\n",
    );
}

#[test]
fn it_finds_what_it_may_ask() {
    let daemon = Daemon::start();
    let Some(count) = said(&daemon, &["COMMAND", "COUNT"], b"") else { return };
    let names = said(&daemon, &["COMMAND", "LIST"], b"").unwrap();
    assert_eq!(count.trim(), names.lines().count().to_string(), "{names}");
    for name in ["cl.throttle", "tollgate.check", "ping"] {
        assert!(names.lines().any(|it| it == name), "{names}");
    }
    check_has(&daemon, &["COMMAND", "INFO", "cl.throttle"], "", &["cl.throttle\n"]);
    check_has(&daemon, &["COMMAND", "DOCS", "cl.throttle"], "", &["cl.throttle\n", "summary\n"]);
}

/// On a terminal it asks for the documentation of all commands, and gives hints from that.
#[test]
fn it_gives_help_on_a_terminal() {
    let daemon = Daemon::start();
    let Some(redis_cli) = ClientKind::RedisCli.command() else { return };
    let line = format!("{} -p {}", redis_cli.get_program().display(), daemon.port);
    // Of util-linux: it runs a command on a terminal of its own.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "dumb");
    let said = printed(script, b"help cl.throttle\nhelp tollgate.check\nPING\nquit\n");
    for part in
        ["key max-burst count period [quantity]", "policy key [COST cost]", "summary:", "PONG"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn a_token_is_its_password() {
    let daemon = Daemon::guarded();
    let asked = ["TOLLGATE.PEEK", "api", "k"];
    let quiet = ["--no-auth-warning"];
    check_has(&daemon, &asked, "", &["NOAUTH Authentication required"]);
    check_has(&daemon, &[&quiet[..], &["-a", SECRET], &asked].concat(), "", &["allowed\n1\n"]);
    let named = ["--user", "gateway", "-a", SECRET];
    check_has(&daemon, &[&quiet[..], &named, &asked].concat(), "", &["allowed\n1\n"]);
    // The connection that was refused is as it was.
    let words = [&quiet[..], &["-a", "guessed"], &asked].concat();
    check_has(&daemon, &words, "", &["NOAUTH Authentication required"]);
}

/// The files are a Redis's, which requires a client certificate too: the same arguments work for both.
#[test]
fn it_asks_with_tls_and_a_certificate_as_it_asks_redis() {
    let redis = Server::with(|config| config.tls_auth_clients("yes"));
    let file = |name: &str| redis.folder().join(name).display().to_string();
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(file);
    let daemon = Daemon::start_with(&format!(
        "listen: {{ tls: {{ cert: {}, key: {}, client_ca: {ca} }} }}\n",
        file("server.pem"),
        file("server.key"),
    ));
    let tls = ["--tls", "--cacert", &ca, "--cert", &cert, "--key", &key];
    let asked = |words: &[&'static str]| [&tls[..], words].concat();
    check(&daemon, &asked(&["CL.THROTTLE", "k", "15", "30", "60"]), "", "0\n16\n15\n-1\n2\n");
    check_has(&daemon, &asked(&["-3", "TOLLGATE.PEEK", "api", "k"]), "", &["allowed"]);
    // More than one record of TLS, both ways.
    let pings = "*1\r\n$4\r\nPING\r\n".repeat(10_000);
    check_has(&daemon, &asked(&["--pipe"]), &pings, &["errors: 0, replies: 10000\n"]);
    for port in [daemon.port, redis.port()] {
        for (options, is_answered) in [(&tls[..], true), (&tls[..3], false), (&[], false)] {
            let Some(mut command) = ClientKind::RedisCli.command() else { return };
            let port = port.to_string();
            let output = command.args(["-p", &port]).args(options).arg("PING").output().unwrap();
            assert_eq!(output.status.success(), is_answered, "{options:?}: {output:?}");
            assert_eq!(output.stdout == b"PONG\n", is_answered, "{options:?}: {output:?}");
        }
    }
}

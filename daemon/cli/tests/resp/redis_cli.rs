//! `redis-cli`, interactive and in scripts.

use std::process::Command;

use tollgate_testkit::{ClientKind, Server};

use crate::process::{Daemon, SECRET, TOKENS, printed};
use crate::start;

/// The output of redis-cli with these arguments, if it is installed.
fn redis_cli(daemon: &Daemon, words: &[&str], input: &[u8]) -> Option<String> {
    let mut command = ClientKind::RedisCli.command()?;
    command.args(["-p", &daemon.port().to_string()]).args(words);
    Some(printed(command, input))
}

#[track_caller]
fn check(daemon: &Daemon, words: &[&str], input: &str, expected: &str) {
    if let Some(output) = redis_cli(daemon, words, input.as_bytes()) {
        assert_eq!(output, expected, "{words:?}");
    }
}

#[track_caller]
fn check_has(daemon: &Daemon, words: &[&str], input: &str, expected: &[&str]) {
    let Some(output) = redis_cli(daemon, words, input.as_bytes()) else { return };
    for part in expected {
        assert!(output.contains(part), "{part} is not in {output}");
    }
}

#[test]
fn examples_of_redis_cell_have_the_same_replies() {
    let daemon = start("");
    check(&daemon, &["CL.THROTTLE", "user123", "15", "30", "60"], "", "0\n16\n15\n-1\n2\n");
    check(&daemon, &["cl.throttle", "user1", "15", "30", "60", "1"], "", "0\n16\n15\n-1\n2\n");
    check(&daemon, &["CL.THROTTLE", "once", "0", "1", "3600"], "", "0\n1\n0\n-1\n3600\n");
    check(&daemon, &["CL.THROTTLE", "once", "0", "1", "3600"], "", "1\n1\n0\n3600\n3600\n");
}

#[test]
fn a_decision_is_a_map() {
    let daemon = start("");
    let check_api = |more: &[&'static str]| [more, &["TOLLGATE.CHECK", "api", "k"]].concat();
    let both = ["allowed", "policy", "api", "remaining", "retry_after_us", "limits", "5/d log"];
    check_has(&daemon, &check_api(&[]), "", &both);
    check_has(&daemon, &check_api(&["-3", "--no-raw"]), "", &["\"allowed\" => (true)"]);
    check_has(
        &daemon,
        &check_api(&["--json"]),
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
fn lines_of_standard_input_are_commands() {
    let daemon = start("");
    let lines = "CL.THROTTLE k 1 2 3600\nEXISTS k\nDEL k\nEXISTS k\nPING\n";
    check(&daemon, &[], lines, "0\n2\n1\n-1\n1800\n1\n1\n0\nPONG\n");
    check(&daemon, &["-x", "EXISTS"], "\0\u{1}\n", "0\n");
    check(&daemon, &["-r", "2", "ECHO", "again"], "", "again\nagain\n");
}

#[test]
fn ten_thousand_piped_commands_get_replies() {
    let daemon = start("");
    let mut commands = Vec::new();
    for at in 0..10_000 {
        let key = format!("k{}", at % 10);
        let words = ["CL.THROTTLE", &key, "499", "1", "86400"];
        commands.extend(format!("*{}\r\n", words.len()).bytes());
        words
            .iter()
            .for_each(|word| commands.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    let Some(output) = redis_cli(&daemon, &["--pipe"], &commands) else { return };
    assert!(output.ends_with("errors: 0, replies: 10000\n"), "{output}");
    // Of a thousand checks of each key, five hundred are admitted.
    check(
        &daemon,
        &["CL.THROTTLE", "k3", "499", "1", "86400", "0"],
        "",
        "0\n500\n0\n-1\n43200000\n",
    );
}

#[test]
fn command_lists_and_describes_the_commands() {
    let daemon = start("");
    let Some(count) = redis_cli(&daemon, &["COMMAND", "COUNT"], b"") else { return };
    let names = redis_cli(&daemon, &["COMMAND", "LIST"], b"").unwrap();
    assert_eq!(count.trim(), names.lines().count().to_string(), "{names}");
    for name in ["cl.throttle", "tollgate.check", "ping"] {
        assert!(names.lines().any(|line| line == name), "{names}");
    }
    check_has(&daemon, &["COMMAND", "INFO", "cl.throttle"], "", &["cl.throttle\n"]);
    check_has(&daemon, &["COMMAND", "DOCS", "cl.throttle"], "", &["cl.throttle\n", "summary\n"]);
}

/// On a terminal, redis-cli requests the documentation of all commands and shows hints.
#[test]
fn help_on_a_terminal_describes_the_commands() {
    let daemon = start("");
    let Some(command) = ClientKind::RedisCli.command() else { return };
    let line = format!("{} -p {}", command.get_program().display(), daemon.port());
    // `script` of util-linux runs a command on a pseudo-terminal.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "dumb");
    let output = printed(script, b"help cl.throttle\nhelp tollgate.check\nPING\nquit\n");
    for part in
        ["key max-burst count period [quantity]", "policy key [COST cost]", "summary:", "PONG"]
    {
        assert!(output.contains(part), "{part} is not in {output}");
    }
}

#[test]
fn token_is_the_password() {
    let daemon = start(TOKENS);
    let peek = ["TOLLGATE.PEEK", "api", "k"];
    let quiet = ["--no-auth-warning"];
    check_has(&daemon, &peek, "", &["NOAUTH Authentication required"]);
    check_has(&daemon, &[&quiet[..], &["-a", SECRET], &peek].concat(), "", &["allowed\n1\n"]);
    let named = ["--user", "gateway", "-a", SECRET];
    check_has(&daemon, &[&quiet[..], &named, &peek].concat(), "", &["allowed\n1\n"]);
    // A rejected password leaves the connection unauthenticated.
    let words = [&quiet[..], &["-a", "guessed"], &peek].concat();
    check_has(&daemon, &words, "", &["NOAUTH Authentication required"]);
}

/// The certificates are those of a Redis server, so the same arguments work for both.
#[test]
fn tls_and_client_certificates_work_as_with_redis() {
    let redis = Server::with(|config| config.tls_auth_clients("yes"));
    let file = |name: &str| redis.folder().join(name).display().to_string();
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(file);
    let daemon = start(&format!(
        "listen: {{ tls: {{ cert: {}, key: {}, client_ca: {ca} }} }}\n",
        file("server.pem"),
        file("server.key"),
    ));
    let tls = ["--tls", "--cacert", &ca, "--cert", &cert, "--key", &key];
    let with_tls = |words: &[&'static str]| [&tls[..], words].concat();
    check(&daemon, &with_tls(&["CL.THROTTLE", "k", "15", "30", "60"]), "", "0\n16\n15\n-1\n2\n");
    check_has(&daemon, &with_tls(&["-3", "TOLLGATE.PEEK", "api", "k"]), "", &["allowed"]);
    // More than one TLS record in each direction.
    let pings = "*1\r\n$4\r\nPING\r\n".repeat(10_000);
    check_has(&daemon, &with_tls(&["--pipe"]), &pings, &["errors: 0, replies: 10000\n"]);
    for port in [daemon.port(), redis.port()] {
        for (options, is_accepted) in [(&tls[..], true), (&tls[..3], false), (&[], false)] {
            let Some(mut command) = ClientKind::RedisCli.command() else { return };
            let port = port.to_string();
            let output = command.args(["-p", &port]).args(options).arg("PING").output().unwrap();
            assert_eq!(output.status.success(), is_accepted, "{options:?}: {output:?}");
            assert_eq!(output.stdout == b"PONG\n", is_accepted, "{options:?}: {output:?}");
        }
    }
}

//! `--store`: the daemon and `tollgate check` on a real Redis or Valkey.

use tollgate_testkit::{Folder, Server};

use crate::process::{Daemon, HTTP_ONLY, run};

/// A limit that does not recover during a test.
const SLOW: &str = "2/366d log";

#[test]
fn check_uses_the_store_directly() {
    let server = Server::start();
    let url = server.url();
    let run_with =
        |command, more: &[&str]| run([&[command, SLOW, "a", "--store", &*url], more].concat());
    assert_eq!(run_with("peek", &[]).1, "✓ allowed  a  2/366d log  2 left\n");
    for (more, code, line) in [
        (&[][..], 0, "✓ allowed  a  2/366d log  1 left\n"),
        (&[], 0, "✓ allowed  a  2/366d log  0 left\n"),
        (&[], 1, "✗ denied  a  2/366d log  0 left  again in "),
        (&["--cost", "3"], 1, "✗ denied  a  2/366d log  0 left  never: a cost of 3 is above 2\n"),
        (&["--namespace", "other"], 0, "✓ allowed  a  2/366d log  1 left\n"),
        (&["-o", "json"], 1, r#"{"allowed":false,"reason":"limit","policy":"=2/366d log""#),
    ] {
        let (exit_code, output, error) = run_with("check", more);
        assert_eq!((exit_code, &*error), (code, ""), "{more:?}");
        assert!(output.starts_with(line), "{more:?}: {output}");
    }
    // A policy of the samples, and one of a file.
    assert_eq!(run(["check", "login", "a", "--store", &url]).0, 0);
    let folder = Folder::create();
    let yaml = "namespace: mine\npolicies: { mine: { limits: [1/366d log] } }";
    let file = folder.write("tollgate.yaml", yaml);
    let mine = ["check", "mine", "a", "--store", &url, "--config", file.to_str().unwrap()];
    assert_eq!((run(mine).0, run(mine).0), (0, 1));
    assert!(!server.keys("mine").is_empty() && !server.keys("other").is_empty());
}

#[test]
fn unavailable_or_invalid_store_exits_with_2_and_the_reason() {
    let server = Server::start();
    let unavailable = format!("redis://u:secret@{}", server.address());
    server.kill();
    let fails = |command: &[&str], arguments: &[&str], message: &str| {
        let (code, output, error) = run([command, arguments].concat());
        assert_eq!((code, &*output), (2, ""), "{arguments:?}: {error}");
        assert!(error.contains(message) && !error.contains("secret"), "{arguments:?}: {error}");
    };
    for (arguments, message) in [
        (&["--store", &*unavailable][..], "the server cannot be reached, so nothing was charged"),
        (&["--store", &unavailable], "error: redis://u:***@127.0.0.1:"),
        (
            &["--store", "redsi://u:secret@h"],
            "unknown store \"redsi://u:***@h\"; expected memory, redis://HOST, redis+cluster://",
        ),
        (&["--store", "redis://h/x"], "write a number, as in /2"),
        (&["--store", "memory"], "name a server, or a directory with --data"),
        (&["--store", "redis://h", "--data", "d"], "cannot be used with"),
        (&["--store", "redis://h", "--namespace", "a b"], "namespace"),
        (&["--namespace", "n"], "--store <URL>"),
        (&["--config", "f"], "a daemon has its own configuration"),
    ] {
        fails(&["check", SLOW, "a"], arguments, message);
    }
    for (arguments, message) in [
        (&["--store", "redsi://u:secret@h"][..], "unknown store \"redsi://u:***@h\""),
        (
            &["--store", "redis://h", "--max-keys", "7"],
            "store.max_keys: applies to the memory store only",
        ),
        (&["--store", "redis://h", "--data", "d"], "store.data: applies to the memory store only"),
        (
            &["--store", "redis://h,i"],
            "only redis+cluster:// and redis+sentinel:// take several hosts",
        ),
    ] {
        fails(&[&["serve"], &HTTP_ONLY[..]].concat(), arguments, message);
    }
}

/// Two policies, and a deadline that tolerates a busy machine.
fn config() -> String {
    format!(
        "store: {{ deadline: 5s }}\npolicies: {{ slow: {{ limits: [{SLOW}], on_store_error: deny }}, \
         open: {{ limits: [{SLOW}], on_store_error: allow }} }}"
    )
}

#[test]
fn daemon_shares_the_state_of_its_store() {
    let server = Server::with(|config| config.password("sesame"));
    let url = server.url();
    let daemons = [(), ()].map(|()| {
        let arguments = ["--store", &url, "--namespace", "shop"];
        Daemon::with_config(&config(), |command| command.args(arguments))
    });
    let shown = format!("  store             {}, namespace shop\n", url.replace("sesame", "***"));
    for (daemon, code) in daemons.iter().cycle().zip([0, 0, 1, 1]) {
        assert!(daemon.greeting.contains(&shown), "{}", daemon.greeting);
        assert!(!daemon.greeting.contains("sesame") && !daemon.greeting.contains("unavailable"));
        let (exit_code, line, _) = run(["check", "slow", "a", "--url", &daemon.url]);
        assert_eq!(exit_code, code, "{line}");
    }
    assert!(server.keys("").iter().all(|key| key.starts_with("shop")));
    server.kill();
    for (policy, code, beginning) in
        [("slow", 1, "✗ denied  b  slow  "), ("open", 0, "✓ allowed  b  open  ")]
    {
        let line = format!("{beginning}store unavailable, on_store_error applied\n");
        let check = ["check", policy, "b", "--url", &daemons[0].url];
        // The daemon needs a moment to detect that the server has ended.
        let is_detected = (0..400).any(|_| run(check) == (code, line.clone(), String::new()));
        assert!(is_detected, "{:?}", run(check));
    }
    for daemon in daemons {
        daemon.stop();
    }
}

#[test]
fn daemon_listens_while_its_store_is_unavailable() {
    let server = Server::start();
    server.kill();
    let url = server.url();
    let daemon = Daemon::with_config(&config(), |command| command.args(["--store", &url]));
    let line = "unavailable, so on_store_error applies: the server cannot be reached";
    assert!(daemon.greeting.contains(line), "{}", daemon.greeting);
    server.restart();
    let is_connected = (0..400).any(|_| run(["check", "slow", "a", "--url", &daemon.url]).0 == 0);
    assert!(is_connected, "the daemon does not connect in the background");
    daemon.stop();
}

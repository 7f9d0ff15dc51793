//! `--store`: the daemon and `tollgate check` on a real Redis or Valkey.

use std::path::Path;

use tollgate_testkit::{Folder, Server};

use crate::process::{Daemon, run};

/// A limit that recovers in no test's time.
const SLOW: &str = "2/366d log";

#[test]
fn check_uses_the_store_directly() {
    let server = Server::start();
    let url = server.url();
    let ask = |more: &[&str]| run([&["check", SLOW, "a", "--store", &*url], more].concat());
    for (more, code, line) in [
        (&["--peek"][..], 0, "✓ allowed  a  2/366d log  2 left\n"),
        (&[], 0, "✓ allowed  a  2/366d log  1 left\n"),
        (&[], 0, "✓ allowed  a  2/366d log  0 left\n"),
        (&[], 1, "✗ denied  a  2/366d log  0 left  again in "),
        (&["--cost", "3"], 1, "✗ denied  a  2/366d log  0 left  never: a cost of 3 is above 2\n"),
        (&["--namespace", "other"], 0, "✓ allowed  a  2/366d log  1 left\n"),
        (
            &["-o", "json", "--peek"],
            1,
            r#"{"allowed":false,"reason":"limit","policy":"=2/366d log""#,
        ),
    ] {
        let (exited, said, complaint) = ask(more);
        assert_eq!((exited, &*complaint), (code, ""), "{more:?}");
        assert!(said.starts_with(line), "{more:?}: {said}");
    }
    // A policy by its name, of the samples or of a file.
    assert_eq!(run(["check", "login", "a", "--store", &url]).0, 0);
    let data = Folder::create();
    let file = data.join("tollgate.yaml");
    std::fs::write(&file, "namespace: mine\npolicies: { mine: { limits: [1/366d log] } }").unwrap();
    let mine = ["check", "mine", "a", "--store", &url, "--config", file.to_str().unwrap()];
    assert_eq!((run(mine).0, run(mine).0), (0, 1));
    assert!(!server.keys("mine").is_empty() && !server.keys("other").is_empty());
}

#[test]
fn a_store_that_cannot_be_asked_exits_with_2_and_says_why() {
    let server = Server::start();
    let away = format!("redis://u:secret@{}", server.address());
    server.kill();
    for (arguments, complaint) in [
        (&["--store", &*away][..], "the server cannot be reached, so nothing was charged"),
        (&["--store", &away], "error: redis://u:***@127.0.0.1:"),
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
        let (code, line, said) = run([&["check", SLOW, "a"], arguments].concat());
        assert_eq!((code, &*line), (2, ""), "{arguments:?}: {said}");
        assert!(said.contains(complaint) && !said.contains("secret"), "{arguments:?}: {said}");
    }
    for (arguments, complaint) in [
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
        let serve = [
            "serve",
            "--http",
            "127.0.0.1:0",
            "--metrics",
            "off",
            "--grpc",
            "off",
            "--resp",
            "off",
        ];
        let (code, line, said) = run([&serve, arguments].concat());
        assert_eq!((code, &*line), (2, ""), "{arguments:?}: {said}");
        assert!(said.contains(complaint) && !said.contains("secret"), "{arguments:?}: {said}");
    }
}

/// A file with one policy and time enough for a busy machine.
fn patient_file(data: &Path) -> String {
    let file = data.join("tollgate.yaml");
    let yaml = format!(
        "store: {{ deadline: 5s }}\npolicies: {{ slow: {{ limits: [{SLOW}] }}, \
         open: {{ limits: [{SLOW}], on_store_error: allow }} }}"
    );
    std::fs::write(&file, yaml).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn daemon_shares_the_state_of_its_store() {
    let server = Server::with(|config| config.password("sesame"));
    let (url, data) = (server.url(), Folder::create());
    let file = patient_file(&data);
    let arguments = ["--config", &file, "--store", &url, "--namespace", "shop"];
    let daemons = [Daemon::start(arguments), Daemon::start(arguments)];
    let shown = format!("  store             {}, namespace shop\n", url.replace("sesame", "***"));
    for (daemon, code) in daemons.iter().cycle().zip([0, 0, 1, 1]) {
        assert!(daemon.greeting.contains(&shown), "{}", daemon.greeting);
        assert!(!daemon.greeting.contains("sesame") && !daemon.greeting.contains("away"));
        let (exited, line, _) = run(["check", "slow", "a", "--url", &daemon.url]);
        assert_eq!(exited, code, "{line}");
    }
    assert!(server.keys("").iter().all(|it| it.starts_with("shop")));
    server.kill();
    for (policy, code, beginning) in
        [("slow", 1, "✗ denied  a  slow  "), ("open", 0, "✓ allowed  a  open  ")]
    {
        let line = format!("{beginning}store unavailable, on_store_error applied\n");
        let asked = ["check", policy, "a", "--url", &daemons[0].url];
        // What has gone may take a moment to be noticed.
        let is_so = (0..400).any(|_| run(asked) == (code, line.clone(), String::new()));
        assert!(is_so, "{:?}", run(asked));
    }
    for daemon in daemons {
        daemon.stop();
    }
}

#[test]
fn daemon_listens_while_its_store_is_unavailable() {
    let server = Server::start();
    server.kill();
    let data = Folder::create();
    let file = patient_file(&data);
    let daemon = Daemon::start(["--config", &file, "--store", &server.url()]);
    let away = "unavailable, so on_store_error applies: the server cannot be reached";
    assert!(daemon.greeting.contains(away), "{}", daemon.greeting);
    server.restart();
    let came = (0..400).any(|_| run(["check", "slow", "a", "--url", &daemon.url]).0 == 0);
    assert!(came, "the store is found in the background");
    daemon.stop();
}

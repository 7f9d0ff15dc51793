//! Operation of the daemon: log, health, notifications to a service manager.

use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use serde_json::Value;

use tollgate_testkit::Folder;

use crate::process::{Daemon, run, send, tollgate};

#[test]
fn health_is_an_exit_code() {
    let daemon = Daemon::start::<[&str; 0]>([]);
    assert_eq!(run(["health", "--url", &daemon.url]), (0, "ready\n".to_owned(), String::new()));
    let url = daemon.url.clone();
    daemon.stop();
    let (code, said, complaint) = run(["health", "--url", &url]);
    assert_eq!((code, &*said), (2, ""));
    assert!(complaint.contains("cannot connect to"), "{complaint}");
}

/// What the daemon writes to its log, from its start to its end.
fn log_of(yaml: &str) -> String {
    let folder = Folder::create();
    let file = folder.join("tollgate.yaml");
    std::fs::write(&file, format!("policies: {{ api: {{ limits: [2/d] }} }}\n{yaml}")).unwrap();
    let mut daemon = Daemon::start_with(
        |command| {
            command.stderr(Stdio::piped());
        },
        ["--config", file.to_str().unwrap()],
    );
    // Probes and scrapes leave no line.
    assert_eq!(run(["health", "--url", &daemon.url]).0, 0);
    let mut log = daemon.log().unwrap();
    daemon.stop();
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn log_is_text_or_json() {
    let text = log_of("");
    assert!(text.contains(" INFO stopped\n"), "{text}");
    assert!(!text.contains("DEBUG") && !text.contains("readyz"), "{text}");
    assert_eq!(log_of("log: { level: error }"), "");
    let json = log_of("log: { level: debug, format: json }");
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |message: &str| lines.iter().find(|line| line["message"] == *message).unwrap();
    for field in ["timestamp", "level", "target"] {
        assert!(line("stopped")[field].is_string(), "{json}");
    }
    assert_eq!(line("listening")["level"], "DEBUG");
    assert!(line("listening")["address"].is_string(), "{json}");
    assert!(!json.contains("readyz"), "{json}");
}

#[test]
fn audit_lines_are_logged_at_any_level() {
    let folder = Folder::create();
    let file = folder.join("tollgate.yaml");
    for format in ["text", "json"] {
        let yaml = format!(
            "policies: {{ api: {{ limits: [2/d] }} }}\nlog: {{ level: error, format: {format} }}\n"
        );
        std::fs::write(&file, yaml).unwrap();
        let mut daemon = Daemon::start_with(
            |command| {
                command.stderr(Stdio::piped());
            },
            ["--config", file.to_str().unwrap()],
        );
        let body = r#"{"policy":"api","key":"user:42"}"#;
        let response = send(daemon.address(), "POST /v1/reset HTTP/1.1", body);
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        let mut text = String::new();
        let mut log = daemon.log().unwrap();
        daemon.stop();
        log.read_to_string(&mut text).unwrap();
        // Nothing else is: not even that it stops.
        assert_eq!(text.lines().count(), 1, "{text}");
        if format == "json" {
            let line: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&line["target"], &line["level"]), (&"audit".into(), &"INFO".into()));
            assert_eq!((&line["verb"], &line["key"]), (&"reset".into(), &"user:42".into()));
        } else {
            for part in [" INFO audit ", "who=\"loopback\"", "verb=\"reset\"", "key=\"user:42\""] {
                assert!(text.contains(part), "{text}");
            }
        }
    }
}

#[test]
fn service_manager_is_notified_of_start_and_stop() {
    let folder = Folder::create();
    let path = folder.join("notify");
    let named = format!("tollgate-{}", std::process::id());
    for is_named in [false, true] {
        let (manager, socket) = if is_named {
            #[cfg(target_os = "linux")]
            {
                use std::os::linux::net::SocketAddrExt;
                use std::os::unix::net::SocketAddr;
                let address = SocketAddr::from_abstract_name(&named).unwrap();
                (UnixDatagram::bind_addr(&address).unwrap(), format!("@{named}"))
            }
            #[cfg(not(target_os = "linux"))]
            continue;
        } else {
            (UnixDatagram::bind(&path).unwrap(), path.display().to_string())
        };
        let told = |expected: &str| {
            let mut bytes = [0; 256];
            let length = manager.recv(&mut bytes).unwrap();
            let said = std::str::from_utf8(&bytes[..length]).unwrap();
            assert_eq!(said.lines().next(), Some(expected));
        };
        let daemon = Daemon::start_with(
            |x| {
                x.env("NOTIFY_SOCKET", socket);
            },
            ["1/s"],
        );
        told("READY=1");
        daemon.stop();
        told("STOPPING=1");
    }
}

#[test]
fn help_of_health_states_exit_codes() {
    let output = tollgate().args(["health", "--help"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("Exits with 0 if it is ready"), "{said}");
}

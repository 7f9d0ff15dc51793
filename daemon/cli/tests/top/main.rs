//! `tollgate top` in a terminal of tmux, beside a daemon under load.
//!
//! Without tmux the tests of the terminal are skipped with a message on standard error.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use client::Client;
use process::{Daemon, output, printed, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tollgate_testkit::{Folder, Port, Server, until};

const CONFIG: &str = r#"
policies:
  api: { limits: ["2/s burst 3"], track: { usage: true, recent: 5 } }
  plain: { limits: ["1000000/s"] }
"#;

/// A daemon with a dashboard at this port.
fn start(port: &Port) -> Daemon {
    start_with(CONFIG, port)
}

fn start_with(config: &str, port: &Port) -> Daemon {
    let address = format!("127.0.0.1:{}", port.number());
    Daemon::with_config(config, |command| command.args(["--admin", &address]))
}

/// Requests of `user:1` and `user:2` under both policies, until it is dropped.
#[derive(Debug)]
struct Load {
    is_stopped: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn start(daemon: &Daemon) -> Self {
        let (is_stopped, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut client = Client::connect(1, daemon.port());
        let (stop, count) = (Arc::clone(&is_stopped), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (policy, key) in [("api", "user:1"), ("api", "user:2"), ("plain", "user:1")] {
                    let body = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
                    let response = client.send("POST /v1/check", &["Host: localhost"], &body);
                    assert!(matches!(response.status, 200 | 429), "{response:?}");
                    count.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        Load { is_stopped, sent, thread: Some(thread) }
    }

    /// Waits until as many more requests were answered.
    fn wait_for(&self, requests: u64) {
        let end = self.sent.load(Ordering::Relaxed) + requests;
        until(|| (self.sent.load(Ordering::Relaxed) >= end).then_some(())).unwrap();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the load ended early: {panic:?}");
        }
    }
}

/// A terminal of 80 columns and 24 lines with a shell, closed on drop.
#[derive(Debug)]
struct Terminal {
    folder: Folder,
}

impl Terminal {
    /// Starts a command of the shell; absent if tmux is not installed.
    fn start(command: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!(
                "SKIPPED: tmux is not installed; on Debian or Ubuntu: sudo apt-get install tmux"
            );
            return None;
        }
        let terminal = Terminal { folder: Folder::create() };
        let mut new =
            terminal.command(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"]);
        new.arg(command);
        // Those of the flags, and what decides about colours.
        for name in ["TOLLGATE_TOKEN", "TOLLGATE_TOKEN_FILE", "NO_COLOR"] {
            new.env_remove(name);
        }
        printed(new, b"");
        Some(terminal)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.folder.join("tmux")).args(arguments);
        command
    }

    /// Presses keys, by their names in tmux.
    fn press(&self, keys: &[&str]) {
        printed(self.command(&[&["send-keys"], keys].concat()), b"");
    }

    fn screen(&self) -> String {
        printed(self.command(&["capture-pane", "-p"]), b"")
    }

    /// A format of tmux, such as that of the process in the terminal.
    fn state(&self, format: &str) -> String {
        printed(self.command(&["display-message", "-p", format]), b"").trim().to_owned()
    }

    /// Waits for a screen that this accepts.
    #[track_caller]
    fn wait(&self, expected: &str, accept: impl Fn(&str) -> bool) {
        let found = until(|| Some(self.screen()).filter(|screen| accept(screen)));
        assert!(found.is_some(), "{expected}:\n{}", self.screen());
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Waits until the shell continues, with the screen, the cursor and the modes of before.
    #[track_caller]
    fn assert_restored(&self) {
        self.wait_for("icanon\n");
        assert_eq!(self.screen().trim(), "code 0\necho\nicanon");
        assert_eq!(self.state("#{alternate_on} #{cursor_flag}"), "0 1");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = output(&mut self.command(&["kill-server"]), b"");
    }
}

/// `tollgate top` of a dashboard, and then its exit code and the modes of the terminal.
fn top(port: &Port, arguments: &str) -> String {
    format!(
        "{} top --url http://127.0.0.1:{} {arguments}; echo code $?; stty -a | tr ' ' '\\n' | \
         grep -x -e echo -e icanon | sort; exec cat",
        env!("CARGO_BIN_EXE_tollgate"),
        port.number()
    )
}

/// The cells of the last row of this name.
fn row<'s>(screen: &'s str, name: &str) -> Option<Vec<&'s str>> {
    let mut rows = screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.rfind(|cells| cells.first() == Some(&name))
}

/// Whether a row has a rate and a rate of denials.
fn has_rates(screen: &str, name: &str) -> bool {
    let rate = |cell: &str| cell.parse::<f64>().is_ok_and(|rate| rate > 0.0);
    row(screen, name).is_some_and(|cells| rate(cells[1]) && rate(cells[2]))
}

#[test]
fn rates_of_a_daemon_under_load_are_shown_over_a_restart() {
    let port = Port::reserve();
    let mut daemon = start(&port);
    let load = Load::start(&daemon);
    let Some(terminal) = Terminal::start(&top(&port, "")) else { return };
    terminal.wait("rates of the policy and its keys", |screen| {
        ["api", "user:1", "user:2"].iter().all(|name| has_rates(screen, name))
    });
    terminal.press(&["Enter", "/", "user:2"]);
    terminal.wait("the filter", |screen| {
        row(screen, "user:1").is_none() && row(screen, "user:2").is_some()
    });
    terminal.press(&["Enter", "Enter"]);
    terminal.wait("the page of the key", |screen| {
        screen.contains("2/s burst 3: ") && screen.contains("usage: ")
    });
    terminal.press(&["Escape"]);
    terminal.wait_for("keys of api, beginning with user:2");
    terminal.press(&["Space"]);
    terminal.wait_for("paused");
    let paused = terminal.screen();
    load.wait_for(300);
    assert_eq!(terminal.screen(), paused);
    terminal.press(&["Space"]);
    terminal.wait("another screen", |screen| screen.contains(" live") && screen != paused);
    drop(load);
    daemon.kill();
    terminal.wait_for("disconnected");
    terminal.wait_for("Connection refused (os error 111); retrying every second");
    daemon = start(&port);
    let _load = Load::start(&daemon);
    terminal.wait("rates after the restart", |screen| {
        screen.contains(" live") && has_rates(screen, "user:2")
    });
    terminal.press(&["q"]);
    terminal.assert_restored();
}

#[test]
fn rates_of_keys_on_redis_are_shown() {
    let redis = Server::start();
    let port = Port::reserve();
    let config = format!("store: {{ url: \"{}\" }}{CONFIG}", redis.url());
    let daemon = start_with(&config, &port);
    let _load = Load::start(&daemon);
    let Some(terminal) = Terminal::start(&top(&port, "")) else { return };
    terminal.wait("rates of the policy and its keys", |screen| {
        ["api", "user:1", "user:2"].iter().all(|name| has_rates(screen, name))
    });
    terminal.press(&["q"]);
    terminal.assert_restored();
}

#[test]
fn a_policy_without_track_says_how_to_list_its_keys() {
    let port = Port::reserve();
    let _daemon = start(&port);
    let Some(terminal) = Terminal::start(&top(&port, "plain")) else { return };
    terminal
        .wait_for("policy \"plain\" tracks nothing; add track: { usage: true } to it and reload");
    terminal.press(&["C-c"]);
    terminal.assert_restored();
}

#[test]
fn a_signal_restores_the_terminal() {
    let port = Port::reserve();
    let _daemon = start(&port);
    let Some(terminal) = Terminal::start(&top(&port, "")) else { return };
    terminal.wait_for("keys of api");
    let shell = terminal.state("#{pane_pid}");
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let top = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(top, Signal::TERM).unwrap();
    terminal.assert_restored();
}

#[test]
fn once_prints_the_rates_for_scripts() {
    let port = Port::reserve();
    let daemon = start(&port);
    let _load = Load::start(&daemon);
    let url = format!("http://127.0.0.1:{}", port.number());
    let (code, printed, error) = run(["top", "api", "--once", "-o", "json", "--url", &url]);
    assert_eq!((code, &*error), (0, ""));
    let top: Value = serde_json::from_str(&printed).unwrap();
    let policy = &top["policies"][0];
    assert_eq!((&policy["name"], &policy["limits"][0]), (&"api".into(), &"2/s burst 3".into()));
    let is_positive = |rate: &Value| rate.as_f64().is_some_and(|rate| rate > 0.0);
    assert!(is_positive(&policy["rates"]["denied"]), "{policy}");
    let keys = top["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2);
    for key in keys {
        assert!(
            is_positive(&key["rates"]["denied"]) && is_positive(&key["usage"]["denied"]),
            "{key}"
        );
    }
    let (code, table, error) = run(["top", "plain", "--once", "--url", &url]);
    assert!(code == 0 && row(&table, "plain").is_some_and(|row| row[2] == "0"), "{table}");
    assert!(error.contains("policy \"plain\" tracks nothing"), "{error}");
    let api = daemon.url.clone();
    for (arguments, message) in [
        (&["--once", "--url", "http://127.0.0.1:1"][..], "Connection refused"),
        (&["--once", "--url", &api], "unknown path \"/api/overview\""),
        (&["nope", "--once", "--url", &url], "has no policy \"nope\""),
        (&["--url", &url], "standard output is not a terminal; add --once"),
    ] {
        let (code, printed, error) = run([&["top"], arguments].concat());
        assert_eq!((code, &*printed), (2, ""), "{arguments:?}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

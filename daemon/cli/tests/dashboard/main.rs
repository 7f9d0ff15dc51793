//! The dashboard in headless Chromium.
//!
//! Without Chromium or the packages of Node.js the tests are skipped with a message on standard
//! error. `UPDATE=1` writes the screenshots of `docs/pictures`.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use process::{Daemon, check_lines, printed, repository};
use tollgate_testkit::ClientKind;

/// Policies that do not recover during a test.
const POLICIES: &str = r#"
operators: loopback
policies:
  api: { limits: ["10/s burst 20"], track: { usage: true } }
  log: { limits: ["5/d log"], track: { usage: true, recent: 20, timeline: 30m by 1s } }
  search: { limits: ["20/s fixed", "600/h sliding by 1min"] }
  trial: { limits: ["1/d log"], shadow: true }
"#;

const TOKENS: &str = r#"
tokens:
  - { name: viewer, token: "viewer-0123456789", scopes: [read, check] }
  - { name: ops, token: "ops-0123456789abcdef", scopes: [admin] }
policies: { log: { limits: ["5/d log"] } }
"#;

/// A daemon with a dashboard at this address.
fn start(yaml: &str, admin: &str) -> Daemon {
    Daemon::with_config(yaml, |command| command.args(["--admin", admin]))
}

fn dashboard(daemon: &Daemon) -> &str {
    let line = daemon.greeting.lines().find_map(|line| line.trim().strip_prefix("dashboard"));
    line.unwrap().trim()
}

/// The browser that plays this scenario with a daemon, unless it is not installed.
fn browser(scenario: &str, daemon: &Daemon) -> Option<Command> {
    let mut command = ClientKind::Chromium.command()?;
    command.arg(format!("{}/tests/dashboard/browser.js", env!("CARGO_MANIFEST_DIR")));
    command.args([scenario, dashboard(daemon), &daemon.url]);
    Some(command)
}

fn check(scenario: &str, yaml: &str, expected: &str) {
    let daemon = start(yaml, "127.0.0.1:0");
    if let Some(browser) = browser(scenario, &daemon) {
        check_lines(&printed(browser, b""), expected);
    }
}

#[test]
fn a_denial_appears_within_two_seconds() {
    const EXPECTED: &str = "
a denial is shown within two seconds: true
1 since the start
log, marked: true
log · Tollgate
numbers behind the chart: 5
";
    check("denial", POLICIES, EXPECTED);
}

#[test]
fn the_page_of_a_key_shows_its_limits_and_when_the_next_request_fits() {
    const EXPECTED: &str = "
user <b>2</b>
The next request is allowed: 3 of 5 left (60 %)
5/d log: 2 of 5 used
The next request is denied; it fits in …
there is no policy \"none\"; define it or pass a limit instead
";
    check("key", POLICIES, EXPECTED);
}

#[test]
fn tracked_keys_are_listed_with_their_usage_timeline_and_notes() {
    const EXPECTED: &str = "
most denied: 203.0.113.9 4 5 5
busiest: 203.0.113.9 4 5 5, quiet 0 3 3
Allowed 5, Denied 4, Total cost 5
denied · POST /login of ada · 1
Decisions over time
log · Tollgate []
";
    check("tracked", POLICIES, EXPECTED);
}

#[test]
fn an_operator_resets_and_blocks_a_key_with_the_keyboard_alone() {
    const EXPECTED: &str = "
first: Skip to content
page: #/keys?policy=log&key=user%3A3
cancelled: Reset…
reset: Reset…
The next request is denied: the key is blocked
problems: []
";
    check("keyboard", POLICIES, EXPECTED);
}

#[test]
fn a_daemon_with_tokens_asks_for_one_and_shows_what_it_permits() {
    const EXPECTED: &str = "
focus: password
buttons: 0
cookies: 0
Reset… Block…
";
    check("token", TOKENS, EXPECTED);
}

#[test]
fn every_page_is_accessible_and_within_the_content_policy() {
    let daemon = start(POLICIES, "127.0.0.1:0");
    let Some(mut browser) = browser("pages", &daemon) else { return };
    if std::env::var_os("UPDATE").is_some() {
        browser.arg(repository("docs/pictures"));
    }
    check_lines(&printed(browser, b""), "checked 7 pages in 3 formats\n");
}

#[test]
fn the_dashboard_reconnects_after_a_restart_of_the_daemon() {
    let mut daemon = start(POLICIES, "127.0.0.1:0");
    let address = dashboard(&daemon).trim_start_matches("http://").trim_end_matches('/').to_owned();
    let Some(mut command) = browser("restart", &daemon) else { return };
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut seen = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match &*line {
            "stop" => daemon.kill(),
            "start" => daemon = start(POLICIES, &address),
            _ => {
                seen += &format!("{line}\n");
                continue;
            }
        }
        stdin.write_all(b"done\n").unwrap();
    }
    assert!(child.wait().unwrap().success(), "{seen}");
    const EXPECTED: &str = "
disconnected: true
live again: true
banner: none
the gap is shown
";
    check_lines(&seen, EXPECTED);
}

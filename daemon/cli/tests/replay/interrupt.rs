//! Ctrl-C ends a replay with a report of the first part and exit code 130.

use std::io::Write;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use tollgate_testkit::Folder;

use crate::tool::tollgate;

/// Interrupts a replay, and checks its report.
fn interrupt(child: Child) {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["source"]["interrupted"], true);
}

#[test]
fn an_interrupted_replay_prints_its_report() {
    let folder = Folder::create();
    let page = folder.join("r.html");
    let child = tollgate()
        .args(["--generate", "poisson rate 1000000/s for 366d keys 1000", "--limit", "10/s"])
        .args(["-o", "json", "--report", page.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The signal handler is installed before the outputs are opened.
    while !page.exists() {
        std::thread::yield_now();
    }
    interrupt(child);
    assert!(std::fs::read_to_string(page).unwrap().contains("</html>"));
}

#[test]
fn an_interrupt_works_while_standard_input_is_silent() {
    let folder = Folder::create();
    let decisions = folder.join("decisions");
    for more in [&[][..], &["--decisions", decisions.to_str().unwrap()]] {
        let page = folder.join("r.html");
        let _ = std::fs::remove_file(&page);
        let mut child = tollgate()
            .args(["-", "--limit", "10/s", "-o", "json", "--report", page.to_str().unwrap()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"time,key\n1,a\n").unwrap();
        while !page.exists() {
            std::thread::yield_now();
        }
        interrupt(child);
    }
}

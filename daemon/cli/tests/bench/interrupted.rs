//! An interrupted run reports the requests until then.

use std::process::Stdio;
use std::sync::mpsc::channel;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::mock::{Action, Mock};
use crate::tool::{split, tollgate};

fn interrupted(words: &str, silent_after: u64, signal: Signal) -> (Option<i32>, Value) {
    let (started, wait_for_start) = channel();
    let mock = Mock::start(move |number| {
        if number == 100 {
            let _ = started.send(());
        }
        if number < silent_after { Action::Allow } else { Action::Hold }
    });
    let words = format!("{} {words} -o json", mock.url());
    let mut command = tollgate();
    command.arg("bench").args(split(&words)).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for_start.recv().unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let object = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), object)
}

#[test]
fn an_interrupted_run_prints_its_report_and_exits_with_130() {
    let check = |words: &str, silent_after, signal| {
        let (code, value) = interrupted(words, silent_after, signal);
        assert_eq!((code, &value["ended"]), (Some(130), &"interrupted".into()), "{value}");
        assert!(value["answers"].as_u64() >= Some(90), "{value}");
        assert_eq!(value["answers"], value["allowed"], "{value}");
    };
    check("--duration 1h -c 2", u64::MAX, Signal::INT);
    check("--duration 1h -c 2 --verify --against 1000000/s", u64::MAX, Signal::TERM);
    check("-n 1000000000 -c 2 --timeout 1h", 101, Signal::INT);
    check("--rate 500 -c 2", u64::MAX, Signal::INT);
}

//! Servers that pause, stop responding or close connections, and interrupted runs.

use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::mock::{Action, Mock};
use crate::process::tollgate;
use crate::tool::{bench, json, split};

/// All requests are due within a tenth of a second, and the server pauses for longer.
#[test]
fn a_pause_adds_to_the_latency_of_every_request_due_in_it() {
    const PAUSE: Duration = Duration::from_millis(400);
    let paused: Arc<OnceLock<Duration>> = Arc::default();
    let measured = Arc::clone(&paused);
    let mock = Mock::start(move |number| {
        if number == 0 {
            let began = Instant::now();
            // Nothing is ever sent, so the wait lasts for the whole pause.
            let (_sender, receiver) = channel::<()>();
            assert_eq!(receiver.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout));
            measured.set(began.elapsed()).unwrap();
        }
        Action::Allow
    });
    let (code, value) = json(&format!("{} --rate 1000 -n 100 -c 1", mock.url()));
    assert_eq!((code, &value["answers"]), (0, &100.into()), "{value}");
    // The last request was due 99 ms after the first, which was sent before the pause.
    let paused = paused.get().unwrap().as_nanos();
    let least = u64::try_from(paused).unwrap() - 99_000_000;
    let [p50, max] = ["p50", "max"].map(|name| value["latency_ns"][name].as_u64().unwrap());
    // Latencies have three significant digits.
    assert!(p50 >= least - least / 500, "p50 {p50} ns after a pause of {paused} ns: {value}");
    assert!(max >= p50);
    assert_eq!(
        (&value["rate"]["due"], &value["rate"]["unsent"]),
        (&100.into(), &0.into()),
        "{value}"
    );
}

#[test]
fn requests_that_were_never_sent_are_reported() {
    let mock = Mock::start(|_| Action::Hold);
    let words = "--rate 600 --duration 1s -c 1 --timeout 1500ms";
    let (_, value) = json(&format!("{} {words}", mock.url()));
    assert_eq!(value["rate"]["due"], 600, "{value}");
    assert_eq!(value["rate"]["unsent"], 599, "{value}");
    assert_eq!(value["errors"]["timeout"], 1, "{value}");
    let (_, table, _) = bench(&format!("{} {words}", mock.url()));
    assert!(table.contains("of 600 requests were never sent"), "{table}");
}

#[test]
fn requests_to_a_server_that_stops_responding_time_out() {
    let mock = Mock::start(|_| Action::Hold);
    let (code, value) = json(&format!("{} -n 6 -c 2 --timeout 100ms", mock.url()));
    assert_eq!((code, &value["errors"]["timeout"]), (2, &6.into()), "{value}");
    assert_eq!((&value["sent"], &value["answers"]), (&6.into(), &0.into()), "{value}");
}

#[test]
fn a_server_that_stops_ends_the_run_with_a_report() {
    let mock = Mock::start(|number| if number < 200 { Action::Allow } else { Action::Die });
    let (code, value) = json(&format!("{} -c 4 --duration 1h", mock.url()));
    assert_eq!((code, &value["ended"]), (2, &"gone".into()), "{value}");
    assert!(value["answers"].as_u64() >= Some(197), "{value}");
    assert!(value["errors"]["refused"].as_u64() > Some(0), "{value}");
}

#[test]
fn an_announced_close_is_no_error() {
    let mock =
        Mock::start(|number| if number % 3 == 2 { Action::AllowAndClose } else { Action::Allow });
    let (code, value) = json(&format!("{} -n 60 -c 2", mock.url()));
    assert_eq!((code, &value["answers"]), (0, &60.into()), "{value}");
    assert_eq!(value["errors"], serde_json::json!({}), "{value}");
}

#[test]
fn a_server_of_another_protocol_is_reported_before_the_run() {
    let server = tollgate_testkit::Server::start();
    let check = |target: &str, parts: &[&str]| {
        let (code, _, error) = bench(&format!("{target} --policy api -n 1 --timeout 1s"));
        assert_eq!(code, 2, "{target}: {error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{part} of {error}"));
    };
    let port = server.port();
    check(&format!("redis://127.0.0.1:{port}"), &["unknown command", "--threshold"]);
    check(&format!("http://127.0.0.1:{port}"), &["no decision from", "is this a tollgate daemon?"]);
    check(&format!("grpc://127.0.0.1:{port}"), &["no decision from"]);
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    let mock = Mock::start(move |_| {
        *counted.lock().unwrap() += 1;
        Action::Allow
    });
    check(&format!("redis://127.0.0.1:{}", mock.port), &["no decision from"]);
    assert_eq!(*count.lock().unwrap(), 0);
}

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

//! Servers that wait, fall silent or go away.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::mock::{Act, Mock};
use crate::run::{bench, json};

/// All requests of it are due within a tenth of a second, and the server pauses for longer.
#[test]
fn a_pause_counts_to_every_request_that_was_due_in_it() {
    const PAUSE: Duration = Duration::from_millis(400);
    let paused: Arc<OnceLock<Duration>> = Arc::default();
    let told = Arc::clone(&paused);
    let mock = Mock::start(move |number| {
        if number == 0 {
            let began = Instant::now();
            // Nobody will tell it to go on, so that it waits for as long as the pause.
            let (_tell, told_to_go_on) = channel::<()>();
            assert_eq!(told_to_go_on.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout));
            told.set(began.elapsed()).unwrap();
        }
        Act::Allow
    });
    let (code, value) = json(&format!("{} --rate 1000 -n 100 -c 1", mock.url()));
    assert_eq!((code, &value["answers"]), (0, &100.into()), "{value}");
    // The last was due 99 ms after the first, which was asked before the pause began.
    let paused = paused.get().unwrap().as_nanos();
    let least = u64::try_from(paused).unwrap() - 99_000_000;
    let [p50, max] = ["p50", "max"].map(|name| value["latency_ns"][name].as_u64().unwrap());
    // Three digits of a latency are kept.
    assert!(p50 >= least - least / 500, "p50 {p50} ns after a pause of {paused} ns: {value}");
    assert!(max >= p50);
    assert_eq!(
        (&value["rate"]["due"], &value["rate"]["unsent"]),
        (&100.into(), &0.into()),
        "{value}"
    );
}

#[test]
fn what_could_not_be_sent_in_time_is_told() {
    let mock = Mock::start(|_| Act::Hold);
    let words = "--rate 600 --duration 1s -c 1 --timeout 1500ms";
    let (_, value) = json(&format!("{} {words}", mock.url()));
    assert_eq!(value["rate"]["due"], 600, "{value}");
    assert_eq!(value["rate"]["unsent"], 599, "{value}");
    assert_eq!(value["errors"]["timeout"], 1, "{value}");
    let (_, table, _) = bench(&format!("{} {words}", mock.url()));
    assert!(table.contains("of 600 were due and never sent"), "{table}");
}

#[test]
fn a_server_that_falls_silent_is_timed_out() {
    let mock = Mock::start(|_| Act::Hold);
    let (code, value) = json(&format!("{} -n 6 -c 2 --timeout 100ms", mock.url()));
    assert_eq!((code, &value["errors"]["timeout"]), (2, &6.into()), "{value}");
    assert_eq!((&value["sent"], &value["answers"]), (&6.into(), &0.into()), "{value}");
}

#[test]
fn a_server_that_dies_ends_the_run_with_what_there_was() {
    let mock = Mock::start(|number| if number < 200 { Act::Allow } else { Act::Die });
    let (code, value) = json(&format!("{} -c 4 --duration 1h", mock.url()));
    assert_eq!((code, &value["ended"]), (2, &"gone".into()), "{value}");
    assert!(value["answers"].as_u64() >= Some(197), "{value}");
    assert!(value["errors"]["refused"].as_u64() > Some(0), "{value}");
}

#[test]
fn a_connection_that_is_closed_in_good_order_is_no_error() {
    let mock = Mock::start(|number| if number % 3 == 2 { Act::AllowAndClose } else { Act::Allow });
    let (code, value) = json(&format!("{} -n 60 -c 2", mock.url()));
    assert_eq!((code, &value["answers"]), (0, &60.into()), "{value}");
    assert_eq!(value["errors"], serde_json::json!({}), "{value}");
}

/// What comes of a server is told, of whatever kind it is.
#[test]
fn what_is_no_limiter_is_told_before_the_run() {
    let server = tollgate_testkit::Server::start();
    let check = |target: &str, parts: &[&str]| {
        let (code, _, error) = bench(&format!("{target} --policy api -n 1 --timeout 1s"));
        assert_eq!(code, 2, "{target}: {error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{part} of {error}"));
    };
    let port = server.port();
    check(&format!("redis://127.0.0.1:{port}"), &["unknown command", "--threshold"]);
    check(&format!("http://127.0.0.1:{port}"), &["does not answer", "is it a tollgate daemon?"]);
    check(&format!("grpc://127.0.0.1:{port}"), &["does not answer"]);
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let mock = Mock::start(move |_| {
        *counted.lock().unwrap() += 1;
        Act::Allow
    });
    check(&format!("redis://127.0.0.1:{}", mock.port), &["does not answer"]);
    assert_eq!(*asked.lock().unwrap(), 0);
}

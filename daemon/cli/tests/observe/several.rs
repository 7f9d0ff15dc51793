//! Several observers, killed and paused ones.

use std::time::Duration;

use rustix::process::Signal;
use tollgate_testkit::{Server, until};

use crate::support::{
    Counts, FLAGS, Observer, application, cluster, config, daemon, increment, totals,
    wait_for_totals,
};

#[test]
fn two_observers_count_once() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    let (daemon, first) = (daemon(&config), Observer::observing(&config, &[], 1));
    let second = Observer::start(&config, &[]);
    second.wait_for_lines("another observer has 127.0.0.1:", 1);
    let arguments = format!("server {} {{KEY}}:WINDOW 1 30 10 1000 0.001", server.port());
    let Some(application) = application(&arguments) else { return };
    let counts = application.join().unwrap();
    wait_for_totals(&daemon, &counts);
    let printed = [first.stop(), second.stop()];
    let counted = printed.each_ref().map(|report| report.contains("counted: 1000 increments"));
    assert_eq!(counted, [true, false], "{printed:?}");
}

#[test]
fn the_standby_takes_over_from_a_killed_observer() {
    let cluster = cluster(3, 0);
    let config = config(&cluster.url(), "");
    let (daemon, mut first) = (daemon(&config), Observer::observing(&config, &[], 3));
    let second = Observer::start(&config, &[]);
    second.wait_for_lines("another observer has 127.0.0.1:", 3);
    let port = cluster.nodes()[0].port();
    let Some(application) =
        application(&format!("cluster {port} {{KEY}}:WINDOW 1 60 10 4000 0.002"))
    else {
        return;
    };
    until(|| (totals(&daemon).values().sum::<u64>() > 500).then_some(())).unwrap();
    first.kill();
    second.wait_for_lines("without a subscription", 3);
    let counts = application.join().unwrap();
    wait_for_totals(&daemon, &counts);
    let report = second.stop();
    assert!(report.contains("without a subscription: 3 times"), "{report}");
}

#[test]
fn a_paused_observer_counts_nothing_twice() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    let (daemon, first) = (daemon(&config), Observer::observing(&config, &[], 1));
    let second = Observer::start(&config, &[]);
    second.wait_for_lines("another observer has 127.0.0.1:", 1);
    let expected = |count| Counts::from([("k".to_owned(), count)]);
    increment(&server, "{k}:1", "60000");
    wait_for_totals(&daemon, &expected(1));
    // It has these increments in its socket when it continues.
    first.signal(Signal::STOP);
    (0..10).for_each(|_| increment(&server, "{k}:1", "60000"));
    second.wait_for_lines("without a subscription", 1);
    wait_for_totals(&daemon, &expected(11));
    first.signal(Signal::CONT);
    (0..10).for_each(|_| increment(&server, "{k}:2", "60000"));
    wait_for_totals(&daemon, &expected(21));
    first.wait_for_lines("standing by", 1);
    (0..10).for_each(|_| increment(&server, "{k}:1", "60000"));
    wait_for_totals(&daemon, &expected(31));
}

#[test]
fn a_killed_observer_that_restarts_states_what_it_has_missed() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    let (daemon, mut observer) = (daemon(&config), Observer::observing(&config, &[], 1));
    increment(&server, "{k}:1", "60000");
    wait_for_totals(&daemon, &Counts::from([("k".to_owned(), 1)]));
    observer.kill();
    (0..4).for_each(|_| increment(&server, "{k}:1", "60000"));
    // Nothing remains of this one.
    increment(&server, "{lost}:1", "1");
    let observer = Observer::observing(&config, &[], 1);
    let log = observer.log();
    let line = log.lines().find(|line| line.contains("without a subscription")).unwrap();
    assert!(line.contains("again after"), "{line}");
    wait_for_totals(&daemon, &Counts::from([("k".to_owned(), 5)]));
    let report = observer.stop();
    for line in [
        "counted: 4 increments",
        "without a notification of their own: 4",
        "without a subscription: 1 times, ",
    ] {
        assert!(report.contains(line), "{line} in\n{report}");
    }
}

#[test]
fn a_lost_connection_and_missing_notifications_are_gaps() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    let (daemon, observer) = (daemon(&config), Observer::observing(&config, &[], 1));
    increment(&server, "{k}:1", "60000");
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    increment(&server, "{k}:1", "60000");
    observer.wait_for_lines("without a subscription", 1);
    wait_for_totals(&daemon, &Counts::from([("k".to_owned(), 2)]));
    server.command(&["CONFIG", "SET", "notify-keyspace-events", "K$"]);
    observer.wait_for_lines("lacks x; run: redis-cli -h 127.0.0.1", 1);
    increment(&server, "{k}:1", "60000");
    std::thread::sleep(Duration::from_secs(1));
    server.command(&["CONFIG", "SET", "notify-keyspace-events", "K$x"]);
    observer.wait_for_lines("without a subscription", 2);
    wait_for_totals(&daemon, &Counts::from([("k".to_owned(), 3)]));
    assert!(observer.stop().contains("without a subscription: 2 times"));
}

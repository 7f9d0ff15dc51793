//! Totals of one observer equal what the application has counted.

use tollgate_testkit::{Reply, Server, slot_of, until};

use crate::support::{
    Counts, FLAGS, Observer, application, cluster, config, copied_total, daemon, increment,
    timeline_sum, totals, wait_for_copies, wait_for_totals,
};

#[test]
fn totals_of_an_application_match_on_a_server() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    let (daemon, observer) = (daemon(&config), Observer::observing(&config, &[], 1));
    let arguments = format!("server {} {{KEY}}:WINDOW 1 3 20 3000 0.002", server.port());
    let Some(application) = application(&arguments) else { return };
    let counts = application.join().unwrap();
    wait_for_totals(&daemon, &counts);
    wait_for_copies(|_| 0, std::slice::from_ref(&server), &counts);
    for (key, total) in &counts {
        assert_eq!(timeline_sum(&daemon, key), *total, "{key}");
    }
    let report = observer.stop();
    for line in [
        "counted: 3000 increments",
        "without a notification of their own: 0",
        "without a subscription: 0 times",
        "ended before they were read: 0 counters",
        "decreased values: 0",
        "not written: 0",
    ] {
        assert!(report.contains(line), "{line} in\n{report}");
    }
    let lasting = server.keys_without_ttl("");
    assert_eq!(lasting, Vec::<String>::new());
    // The lease is free at once, and nothing is counted again.
    let next = Observer::observing(&config, &[], 1);
    increment(&server, "{user:0}:next", "60000");
    let more = counts.iter().map(|(key, n)| (key.clone(), n + u64::from(key == "user:0")));
    wait_for_totals(&daemon, &more.collect());
    assert!(next.log().contains("again after"), "{}", next.log());
}

#[test]
fn totals_of_an_application_match_on_a_cluster_in_the_same_slots() {
    let cluster = cluster(3, 0);
    let config = config(&cluster.url(), "");
    let (daemon, observer) = (daemon(&config), Observer::observing(&config, &[], 3));
    let port = cluster.nodes()[0].port();
    let Some(application) =
        application(&format!("cluster {port} {{KEY}}:WINDOW 1 4 30 2000 0.002"))
    else {
        return;
    };
    let counts = application.join().unwrap();
    wait_for_totals(&daemon, &counts);
    wait_for_copies(|name| cluster.primary_of_slot(slot_of(name)), cluster.nodes(), &counts);
    for key in counts.keys() {
        let slot = |name: String| cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", &name]);
        assert_eq!(slot(format!("{{{key}}}:1")), slot(format!("shop:{{{key}}}:data")));
        assert_eq!(timeline_sum(&daemon, key), counts[key], "{key}");
    }
    assert!(observer.stop().contains("counted: 2000 increments"));
}

#[test]
fn a_failover_is_followed() {
    let cluster = cluster(3, 1);
    let config = config(&cluster.url(), "");
    let (daemon, observer) = (daemon(&config), Observer::observing(&config, &[], 3));
    let keys: Vec<_> = (0..30).map(|number| format!("k{number}")).collect();
    let count = |round: &str| {
        for key in &keys {
            let name = format!("{{{key}}}:{round}");
            increment(&cluster.nodes()[cluster.primary_of_slot(slot_of(&name))], &name, "60000");
        }
    };
    let expected = |count| keys.iter().map(|key| (key.clone(), count)).collect::<Counts>();
    count("1");
    wait_for_totals(&daemon, &expected(1));
    let primary = cluster.primary_of_slot(0);
    cluster.failover(cluster.replicas_of(primary)[0]);
    count("1");
    count("2");
    wait_for_totals(&daemon, &expected(3));
    assert!(observer.log().contains("is no primary any more"), "{}", observer.log());
}

#[test]
fn a_slot_that_moves_is_counted_once() {
    let cluster = cluster(2, 0);
    let config = config(&cluster.url(), "");
    let (daemon, _observer) = (daemon(&config), Observer::observing(&config, &[], 2));
    let slot = slot_of("{k}");
    let (from, name) = (cluster.primary_of_slot(slot), "{k}:1");
    increment(&cluster.nodes()[from], name, "60000");
    let expected = |count| Counts::from([("k".to_owned(), count)]);
    wait_for_totals(&daemon, &expected(1));
    cluster.move_slot(slot, 1 - from);
    increment(&cluster.nodes()[1 - from], name, "60000");
    wait_for_totals(&daemon, &expected(2));
}

#[test]
fn other_patterns_are_observed_and_nothing_is_written_beside_the_counters_if_read_only() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    let daemon = daemon(&config);
    let arguments = ["--counters", "{ratelimit:KEY:}*", "--read-only"];
    let observer = Observer::observing(&config, &arguments, 1);
    let counters = ["{ratelimit:10.0.0.1:}17", "{ratelimit:10.0.0.1:}18", "{other}:17"];
    counters.iter().for_each(|name| increment(&server, name, "60000"));
    server.command(&["SET", "{ratelimit:text:}1", "text"]);
    server.command(&["HSET", "{ratelimit:hash:}1", "f", "v"]);
    wait_for_totals(&daemon, &Counts::from([("10.0.0.1".to_owned(), 2)]));
    observer.stop();
    let beside: Vec<_> =
        server.keys("").into_iter().filter(|key| !key.starts_with("shop:")).collect();
    assert_eq!(beside.len(), counters.len() + 2, "{beside:?}");
    assert_eq!(server.keys("shop:{"), Vec::<String>::new());

    let observer = Observer::observing(&config, &["--counters", "hits.KEY"], 1);
    (0..3).for_each(|_| increment(&server, "hits.a", "60000"));
    let expected = Counts::from([("10.0.0.1".to_owned(), 2), ("a".to_owned(), 3)]);
    wait_for_totals(&daemon, &expected);
    observer.stop();
    assert_eq!(copied_total(&server, "shop:{hits.a}:data"), Some(3));
}

#[test]
fn counters_that_begin_again_are_counted_again() {
    let server = Server::with(|config| {
        config.line("notify-keyspace-events K$xg").line("hz 100").line("enable-debug-command yes")
    });
    let config = config(&server.url(), "");
    let (daemon, observer) = (daemon(&config), Observer::observing(&config, &[], 1));
    let wait = |key: &str, expected| {
        let found = || totals(&daemon).get(key) == Some(&expected);
        assert!(until(|| found().then_some(())).is_some(), "{:?}", totals(&daemon));
    };
    // Expired.
    increment(&server, "{a}:1", "600");
    wait("a", 1);
    let exists = || server.command(&["EXISTS", "{a}:1"]) == Reply::Integer(1);
    until(|| (!exists()).then_some(())).expect("expires");
    increment(&server, "{a}:1", "60000");
    wait("a", 2);
    // Deleted.
    (0..3).for_each(|_| increment(&server, "{b}:1", "60000"));
    wait("b", 3);
    server.command(&["DEL", "{b}:1"]);
    increment(&server, "{b}:1", "60000");
    wait("b", 4);
    // Set, and set to less.
    server.command(&["SET", "{c}:1", "5"]);
    wait("c", 5);
    server.command(&["SET", "{c}:1", "2"]);
    wait("c", 7);
    // Decreased, which is not counted until the highest value is exceeded.
    server.command(&["DECRBY", "{c}:1", "1"]);
    (0..2).for_each(|_| increment(&server, "{c}:1", "60000"));
    wait("c", 8);
    // Expired before it could be read: the server answers nothing else in the meantime.
    let mut connection = server.connect();
    for number in 0..5 {
        let name = &*format!("{{d}}:{number}");
        let commands: [&[&str]; 5] = [
            &["MULTI"],
            &["INCR", name],
            &["PEXPIRE", name, "1"],
            &["DEBUG", "SLEEP", "0.005"],
            &["EXEC"],
        ];
        for words in commands {
            connection.command(words).unwrap().expect_no_error(words[0]);
        }
    }
    increment(&server, "{d}:last", "60000");
    wait("d", 1);
    let report = observer.stop();
    assert!(report.contains("ended before they were read: 5 counters, 5 increments"), "{report}");
}

//! What an observer needs: notifications, permissions, TLS.

use tollgate_testkit::{Config, Folder, Reply, Server};

use crate::process::{read_repository, run};
use crate::support::{Counts, FLAGS, Observer, config, daemon, increment, wait_for_totals};

/// Runs an observer that cannot start; returns what it prints on standard error.
fn refused(config: &str, arguments: &[&str]) -> String {
    let folder = Folder::create();
    let file = folder.write("tollgate.yaml", config);
    let begin = ["observe", "--config", file.to_str().unwrap()];
    let (code, printed, error) = run([&begin, arguments].concat());
    assert_eq!((code, &*printed), (2, ""), "{error}");
    error
}

#[test]
fn a_server_without_the_notifications_is_refused_with_the_command() {
    let server = Server::with(|config| config.line("notify-keyspace-events Ex"));
    let config = config(&server.url(), "");
    let error = refused(&config, &["api"]);
    let (_, command) = error.split_once("run: ").unwrap();
    assert!(error.contains("is \"xE\" and lacks K, $; run: redis-cli -h 127.0.0.1 -p"), "{error}");
    // The command, as printed, adds to the flags.
    let words: Vec<_> = command.split_whitespace().skip_while(|word| *word != "CONFIG").collect();
    let words: Vec<_> = words.iter().map(|word| word.trim_matches('\'')).collect();
    assert_eq!(server.command(&words), Reply::ok());
    let _observer = Observer::observing(&config, &[], 1);
}

#[test]
fn arguments_that_do_not_suit_are_refused() {
    let server = Server::with(|config| config.line(FLAGS));
    let config = config(&server.url(), "");
    for (arguments, message) in [
        (&["other"][..], "policy \"other\" in "),
        (&["api", "--counters", "rate:*"], "write KEY where the key is"),
        (&["api", "--store", "memory"], "the store is memory"),
        (&["api", "--store", "redis://127.0.0.1:1"], "redis://127.0.0.1:1: "),
    ] {
        let config = config.replace(", deadline: 5s", "");
        let error = refused(&config, arguments);
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    let cluster = crate::support::cluster(1, 0);
    let config = crate::support::config(&cluster.url(), "");
    let error = refused(&config, &["api", "--counters", "rate:KEY:*"]);
    assert!(error.contains("on a cluster, the counters of a key must have one slot"), "{error}");
}

/// The rules of the user in `docs/observe.md`.
fn documented_user() -> String {
    let page = read_repository("docs/observe.md");
    let (_, rules) = page.split_once("user observer ").unwrap();
    let (rules, _) = rules.split_once("```").unwrap();
    let rules = rules.replace("\\\n", "").replace("PASSWORD", "secret");
    rules.trim().replace("tollgate:", "shop:")
}

#[test]
fn the_documented_permissions_suffice_over_tls() {
    let rules = format!("observer {}", documented_user());
    let server = Server::with(|config: Config| config.tls().line(FLAGS).user(&rules));
    let ca = format!(", ca: {}", server.ca_path().display());
    let url = server.url_as("observer", "secret");
    let observer = Observer::start(&config(&url, &ca), &[]);
    observer.wait_for_lines("observing localhost:", 1);
    increment(&server, "{k}:1", "60000");
    let daemon = daemon(&config(&server.url(), &ca));
    wait_for_totals(&daemon, &Counts::from([("k".to_owned(), 1)]));
    let report = observer.stop();
    assert!(report.contains("counted: 1 increments"), "{report}");
}

//! Runs observers, an application, and a daemon that shows the records.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tollgate_testkit::{ClientKind, Cluster, Folder, Reply, Server, until};

use crate::process::{Daemon, output, repository, run, tollgate};

/// The flags that an observer needs.
pub(crate) const FLAGS: &str = "notify-keyspace-events K$x";

/// The requests of each key.
pub(crate) type Counts = BTreeMap<String, u64>;

/// A configuration for a store, with lines for it.
pub(crate) fn config(url: &str, store: &str) -> String {
    format!(
        "namespace: shop\nstore: {{ url: \"{url}\", deadline: 5s{store} }}\npolicies: {{ api: {{ \
         limits: [100/min], track: {{ usage: true, timeline: 1h by 1m }} }} }}\n"
    )
}

/// A running observer, killed on drop.
#[derive(Debug)]
pub(crate) struct Observer {
    child: Child,
    log: Arc<Mutex<String>>,
    _folder: Folder,
}

impl Observer {
    /// Starts an observer for the policy `api` of a configuration.
    pub(crate) fn start(config: &str, arguments: &[&str]) -> Self {
        let folder = Folder::create();
        let file = folder.write("tollgate.yaml", config);
        let mut command = tollgate();
        command.args(["observe", "api", "--config"]).arg(file).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let log: Arc<Mutex<String>> = Arc::default();
        let lines = Arc::clone(&log);
        thread::spawn(move || {
            let mut line = String::new();
            while errors.read_line(&mut line).is_ok_and(|len| len > 0) {
                lines.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        Observer { child, log, _folder: folder }
    }

    /// Starts an observer, and waits until it observes this number of servers.
    pub(crate) fn observing(config: &str, arguments: &[&str], servers: usize) -> Self {
        let observer = Observer::start(config, arguments);
        observer.wait_for_lines("observing 127.0.0.1:", servers);
        observer
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log has this number of lines with a text.
    #[track_caller]
    pub(crate) fn wait_for_lines(&self, text: &str, count: usize) {
        let found = || self.log().lines().filter(|line| line.contains(text)).count() >= count;
        let is_found = until(|| found().then_some(())).is_some();
        assert!(is_found, "{count} lines with {text:?} in\n{}", self.log());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Interrupts the observer as Ctrl-C does, and returns what it printed.
    #[track_caller]
    pub(crate) fn stop(mut self) -> String {
        self.signal(Signal::INT);
        let status = self.child.wait().unwrap();
        let mut printed = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(status.success(), "{status}: {printed}{}", self.log());
        printed
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The application; absent if Python is not installed.
pub(crate) fn application(arguments: &str) -> Option<thread::JoinHandle<Counts>> {
    let mut command = ClientKind::Python.command()?;
    command.arg(repository("daemon/cli/tests/observe/counters.py")).args(arguments.split(' '));
    Some(thread::spawn(move || {
        let (code, printed, error) = output(&mut command, b"");
        assert_eq!(code, 0, "{error}");
        serde_json::from_str(&printed).unwrap()
    }))
}

/// A daemon with a configuration, which shows the records.
pub(crate) fn daemon(config: &str) -> Daemon {
    Daemon::with_config(config, |command| command)
}

/// What a command prints; null while the store is unavailable.
fn json(daemon: &Daemon, arguments: &[&str]) -> Value {
    let more = ["--url", &daemon.url, "-o", "json"];
    let (_, printed, error) = run([arguments, &more].concat());
    if error.contains("store unavailable") {
        return Value::Null;
    }
    serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}{error}"))
}

/// The totals of all keys, as `tollgate keys` prints them; none while the store is unavailable.
pub(crate) fn totals(daemon: &Daemon) -> Counts {
    let page = json(daemon, &["keys", "api", "--order", "most-used", "--limit", "500"]);
    let total =
        |key: &Value| (key["key"].as_str().unwrap().into(), key["allowed"].as_u64().unwrap());
    page["keys"].as_array().into_iter().flatten().map(total).collect()
}

/// Waits until the totals are those of the application.
#[track_caller]
pub(crate) fn wait_for_totals(daemon: &Daemon, expected: &Counts) {
    let mut found = Counts::new();
    let is_equal = until(|| {
        found = totals(daemon);
        (found == *expected).then_some(())
    });
    assert!(is_equal.is_some(), "expected {expected:?}\nfound {found:?}");
}

/// The sum of the timeline of a key.
pub(crate) fn timeline_sum(daemon: &Daemon, key: &str) -> u64 {
    let record = json(daemon, &["inspect", "api", key]);
    let intervals =
        record["timeline"]["intervals"].as_array().unwrap_or_else(|| panic!("{record}"));
    intervals.iter().map(|interval| interval["allowed"].as_u64().unwrap()).sum()
}

/// The total in the hash beside the counters of a key, if the hash is there and expires.
pub(crate) fn copied_total(server: &Server, name: &str) -> Option<u64> {
    let total = server.command(&["HGET", name, "total"]);
    let last = server.command(&["HGET", name, "last-updated"]);
    let expires = matches!(server.command(&["PTTL", name]), Reply::Integer(1..));
    match (total, last) {
        (Reply::Bulk(total), Reply::Bulk(last)) if expires => {
            let last: u64 = String::from_utf8(last).unwrap().parse().unwrap();
            assert!(last > 1_600_000_000_000, "{last} is no time in ms");
            Some(String::from_utf8(total).unwrap().parse().unwrap())
        }
        _ => None,
    }
}

/// Waits until each key has its total in the hash beside its counters.
#[track_caller]
pub(crate) fn wait_for_copies(
    server: impl Fn(&str) -> usize,
    servers: &[Server],
    expected: &Counts,
) {
    for (key, total) in expected {
        let name = format!("shop:{{{key}}}:data");
        let server = &servers[server(&name)];
        let found = || copied_total(server, &name).filter(|found| found == total);
        assert!(until(found).is_some(), "{name}: {:?}", copied_total(server, &name));
    }
}

/// A cluster with the flags.
pub(crate) fn cluster(primaries: usize, replicas: usize) -> Cluster {
    Cluster::with(primaries, replicas, |config| config.line(FLAGS))
}

/// Increments a counter that expires after some ms.
pub(crate) fn increment(server: &Server, name: &str, expiry: &str) {
    let mut connection = server.connect();
    for words in [&["MULTI"][..], &["INCR", name], &["PEXPIRE", name, expiry], &["EXEC"]] {
        connection.command(words).unwrap().expect_no_error(words[0]);
    }
}

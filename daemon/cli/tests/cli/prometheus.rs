//! Prometheus and promtool, both of the Debian package `prometheus`.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tollgate_testkit::Folder;

use crate::client::send;
use crate::process::{output, repository};

/// Runs promtool in the folder of the rules. Returns whether it succeeded, and its output.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(repository("deploy/prometheus"));
    let (code, printed, error) = output(&mut command, input.as_bytes());
    (code == 0, printed + &error)
}

/// A Prometheus server that scrapes one daemon, killed on drop.
#[derive(Debug)]
pub(crate) struct Prometheus {
    child: Child,
    _folder: Folder,
    address: String,
}

impl Prometheus {
    /// Starts a server, and waits until it has the metrics of the daemon at `target`.
    pub(crate) fn start(target: &str) -> Self {
        let folder = Folder::create();
        // The listener closes at once: Prometheus does not print a port that it chooses itself.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let scrape = format!(
            "scrape_configs: [{{ job_name: tollgate, scrape_interval: 200ms, \
             scrape_timeout: 200ms, static_configs: [{{ targets: [\"{target}\"] }}] }}]"
        );
        let file = folder.write("prometheus.yaml", scrape);
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(["--enable-feature=exemplar-storage", "--log.level=error"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run prometheus: {error}"));
        let prometheus = Prometheus { child, _folder: folder, address };
        prometheus.wait("it does not listen", |p| TcpStream::connect(&p.address).is_ok());
        prometheus.wait("it scrapes nothing", |p| {
            p.query("up{job=\"tollgate\"} == 1").contains("\"value\"")
        });
        prometheus
    }

    /// The result of an expression.
    pub(crate) fn query(&self, expression: &str) -> String {
        self.get("query", expression, "")
    }

    /// The exemplars of a series.
    pub(crate) fn exemplars(&self, series: &str) -> String {
        self.get("query_exemplars", series, "&start=0&end=9999999999")
    }

    fn get(&self, endpoint: &str, query: &str, span: &str) -> String {
        let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let line = format!("GET /api/v1/{endpoint}?query={query}{span}");
        send(&*self.address, &line, &["Accept: application/json"], "").body
    }

    /// Waits until a condition holds, for half a minute at most.
    pub(crate) fn wait(&self, failure: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if condition(self) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{failure}");
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Prometheus and its tool, run. Both are of the Debian package `prometheus`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tollgate_testkit::Folder;

pub(crate) fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

fn missing<T>(tool: &str) -> impl FnOnce(std::io::Error) -> T {
    move |x| panic!("{tool} cannot be run: {x}; on Debian: sudo apt-get install prometheus")
}

/// Runs the tool to its end in the folder of the rules; whether it is content, and what it said.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(deploy("prometheus"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(missing("promtool"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// `GET`s a path: the body of the answer.
pub(crate) fn get(address: &str, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    write!(stream, "{head}accept: {accept}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

/// A Prometheus that scrapes one daemon.
#[derive(Debug)]
pub(crate) struct Prometheus {
    child: Child,
    _folder: Folder,
    address: String,
}

impl Prometheus {
    /// Starts one, and waits until it has the daemon's metrics.
    pub(crate) fn start(scraped: &str) -> Self {
        let folder = Folder::create();
        // Freed at once: Prometheus does not say which port it was given.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let file = folder.join("prometheus.yaml");
        let scrape = format!(
            "scrape_configs: [{{ job_name: tollgate, scrape_interval: 200ms, scrape_timeout: 200ms, \
             static_configs: [{{ targets: [\"{scraped}\"] }}] }}]"
        );
        std::fs::write(&file, scrape).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(["--enable-feature=exemplar-storage", "--log.level=error"])
            .stderr(Stdio::null())
            .spawn();
        let child = child.unwrap_or_else(missing("prometheus"));
        let prometheus = Prometheus { child, _folder: folder, address };
        prometheus
            .wait("it does not listen", |prometheu| TcpStream::connect(&prometheu.address).is_ok());
        prometheus.wait("it scrapes nothing", |prometheu| {
            prometheu.query("up{job=\"tollgate\"} == 1").contains("\"value\"")
        });
        prometheus
    }

    /// What it answers to an expression.
    pub(crate) fn query(&self, expression: &str) -> String {
        self.ask("query", expression)
    }

    /// What it knows of the exemplars of a series.
    pub(crate) fn exemplars(&self, series: &str) -> String {
        self.ask("query_exemplars", series)
    }

    fn ask(&self, what: &str, expression: &str) -> String {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let span = if what == "query" { "" } else { "&start=0&end=9999999999" };
        get(&self.address, &format!("/api/v1/{what}?query={encoded}{span}"), "application/json")
    }

    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if is_so(self) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{what}");
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Several daemons that share a store.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tollgate_testkit::Folder;

use crate::client::{Client, send};
use crate::process::Daemon;
use crate::scale::Scale;
use crate::traffic::POLICIES;

/// Daemons with the same policies, each with its own path to the store.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) daemons: Vec<Daemon>,
    folder: Folder,
}

impl Fleet {
    /// Starts the daemons; `store` returns the fields of `store` for a daemon's number.
    pub(crate) fn start(scale: &Scale, store: impl Fn(usize) -> String) -> Self {
        Self::with_daemons(scale.daemons, scale, store)
    }

    pub(crate) fn with_daemons(
        count: usize,
        scale: &Scale,
        store: impl Fn(usize) -> String,
    ) -> Self {
        let folder = Folder::create();
        let policies = POLICIES.map(|policy| {
            let limits: Vec<_> =
                policy.limits.split("; ").map(|limit| format!("\"{limit}\"")).collect();
            format!("  {}: {{ limits: [{}] }}\n", policy.name, limits.join(", "))
        });
        let policies = policies.concat();
        let daemons = (0..count).map(|index| {
            let deadline = scale.deadline;
            let yaml = format!(
                "store: {{ {}, deadline: {deadline}ms }}\n\
                 drain: {{ delay: 3s }}\n\
                 policies:\n{policies}",
                store(index)
            );
            let log = File::create(folder.join(log_name(index))).unwrap();
            Daemon::with_config(&yaml, |command| command.stderr(log))
        });
        let daemons = daemons.collect();
        Fleet { daemons, folder }
    }

    /// Waits until each daemon knows all others.
    pub(crate) fn wait_for_members(&self) {
        let start = Instant::now();
        let count = self.daemons.len();
        for (index, daemon) in self.daemons.iter().enumerate() {
            while metric(daemon, "tollgate_store_members") != count as f64 {
                assert!(start.elapsed() < Duration::from_secs(60), "{}", self.log(index));
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// The log of a daemon.
    pub(crate) fn log(&self, index: usize) -> String {
        std::fs::read_to_string(self.log_path(index)).unwrap()
    }

    fn log_path(&self, index: usize) -> PathBuf {
        self.folder.join(log_name(index))
    }

    /// The resident memory of the daemons together, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.daemons.iter().map(resident_kib).sum()
    }
}

fn log_name(index: usize) -> String {
    format!("{index}.log")
}

fn resident_kib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A metric of a daemon.
pub(crate) fn metric(daemon: &Daemon, name: &str) -> f64 {
    let page = send(daemon.metrics_address(), "GET /metrics", &[], "").body;
    read_metric(&page, name)
}

/// The value of a series on a page of metrics.
pub(crate) fn read_metric(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

/// A connection to the metrics of a daemon.
pub(crate) fn metrics_client(address: &str) -> Client {
    Client::new(TcpStream::connect(address).unwrap())
}

/// What the store counts for the first limit of a policy, by key.
pub(crate) fn used(daemon: &Daemon, policy: &str, keys: usize) -> BTreeMap<usize, u64> {
    let used = |key| {
        let body = format!(r#"{{"policy":"{policy}","key":"user:{key}"}}"#);
        let start = Instant::now();
        loop {
            let response = send(daemon.address(), "POST /v1/inspect", &[], &body);
            if response.status == 200 {
                let state: Value = serde_json::from_str(&response.body).unwrap();
                return state["limits"][0]["used"].as_u64().unwrap();
            }
            // A busy machine may miss the deadline.
            assert!(start.elapsed() < Duration::from_secs(10), "{}", response.body);
        }
    };
    (0..keys).map(|key| (key, used(key))).collect()
}

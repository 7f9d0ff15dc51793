//! The daemon on a fixed port, so that it can be restarted.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::Signal;

use crate::process::{self, tollgate};

/// A running daemon, killed on drop.
#[derive(Debug)]
pub(crate) struct Daemon {
    process: process::Daemon,
    config: PathBuf,
    port: u16,
    /// The port for Envoy's rate limit filter.
    grpc: Option<u16>,
}

impl Daemon {
    /// Starts a daemon and waits until it listens.
    pub(crate) fn start(config: &Path, port: u16, grpc: Option<u16>) -> Self {
        Self { process: spawn(config, port, grpc), config: config.to_owned(), port, grpc }
    }

    pub(crate) fn url(&self) -> &str {
        &self.process.url
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Replaces a text of the configuration, which the daemon then reads again.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let config = fs::read_to_string(&self.config).unwrap();
        assert!(config.contains(from), "{from} is not in {config}");
        fs::write(&self.config, config.replace(from, to)).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the daemon again on the same port after [`Self::kill`].
    pub(crate) fn restart(&mut self) {
        self.process = spawn(&self.config, self.port, self.grpc);
    }
}

fn spawn(config: &Path, port: u16, grpc: Option<u16>) -> process::Daemon {
    let log = File::options().create(true).append(true).open(config.with_extension("log")).unwrap();
    let [http, grpc] =
        [Some(port), grpc].map(|port| port.map_or("off".to_owned(), |n| format!("127.0.0.1:{n}")));
    let mut command = tollgate();
    command.args(["serve", "--metrics", "off", "--resp", "off", "--http", &http, "--grpc", &grpc]);
    command.arg("--config").arg(config).stderr(log);
    // All listeners are bound before the first line is printed.
    process::Daemon::spawn_until(&mut command, |line| line.contains(&http))
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(self.config.with_extension("log"));
            let _ = writeln!(std::io::stderr(), "the daemon's log:\n{}", log.unwrap_or_default());
        }
    }
}
